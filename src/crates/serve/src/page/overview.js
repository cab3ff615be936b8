// The view of the whole crawl.
function overview(view) {
  view.replaceChildren(
    make("div", { class: "tiles", id: "tiles" }),
    two(section("Most important pages", "", "top"), section("Largest changes", "", "movers")),
    two(section("Hosts", "by the importance of their pages", "hosts"), section("Crawl next", "", "next")),
    two(section("Coverage", "of what readers see who start at the seeds, in percent: at least, and at most", "covered"),
      section("Where readers go on", "to pages not read yet, by host", "unread")),
    two(section("Fetches that failed, and pages that are gone", "by host", "failing"), section("Records that could not be used", "by reason", "skipped")));
  if (known) counts(known);
}
function tiles(status) {
  const tile = (value, text, href) => make(href ? "a" : "div", { class: "tile", ...(href ? { href } : {}) }, make("b", {}, value), make("span", {}, text));
  const skipped = Object.values(status.skipped).reduce((sum, n) => sum + n, 0);
  const age = status.snapshot_age_seconds;
  show("tiles",
    tile(count(status.pages), "pages known"),
    tile(count(status.visited), "crawled"),
    tile(count(status.frontier), "known, not crawled (frontier)"),
    tile(count(status.records), "records"),
    tile(count(status.links), "links"),
    tile(count(status.failed), `fetches failed; ${many(status.gone, "record")} of pages gone`, "#/failures"),
    tile(count(skipped), "records skipped"),
    tile(short(status.bound_l1), "total error at most"),
    tile(status.turnovers.toFixed(2), "turnovers (times all cash was passed on)"),
    tile(age == null ? "none" : span(age), "age of the snapshot"),
    tile(status.last_fetch ? time(status.last_fetch) : "unknown", "latest fetch in it"));
}
function counts(status) {
  tiles(status);
  const rows = Object.entries(status.skipped).sort((a, b) => b[1] - a[1]).map(([reason, n]) => [reason, count(n)]);
  show("skipped", rows.length ? table([["reason"], ["records", "n"]], rows) : none("None."));
}
let certainOnly = false;
async function movers() {
  const found = await get(`movers?n=20${certainOnly ? "&certain-only" : ""}`);
  show("movers-note", found.from ? "since the previous snapshot, relative to what they had, among the first 1,000" : "");
  return [moves(found), found.to];
}
// A choice between all changes and those that are certain.
function choice() {
  const button = make("button", { type: "button", "aria-pressed": certainOnly }, "Only certain changes");
  button.addEventListener("click", async () => {
    certainOnly = !certainOnly;
    await tell("movers", async () => (await movers())[0]);
    at("movers")?.querySelector("button")?.focus();
  });
  return button;
}
// What moved: only changes beyond both bounds count, and of what is left, how much is dilution by new pages.
function moves(found) {
  if (!found.from) return none("There is only one snapshot so far.");
  const moved = found.rose_pages + found.fell_pages;
  const certain = found.margin == null ? "without a bound on both sides no change is certain"
    : `${many(moved, "page")} of ${count(found.common_pages)} changed by more than the bounds`;
  const diluted = found.l1 > 0 ? `; ${(100 * found.dilution_l1 / found.l1).toFixed(0)} % of all change is dilution by ${many(found.new_pages, "new page")}` : "";
  const row = one => {
    const change = 100 * (one.importance / one.importance_before - 1);
    const text = Number.isFinite(change) ? `${change < 0 ? "\u2212" : "+"}${short(Math.abs(change))} %` : "new";
    return [count(one.rank), count(one.rank_before),
      make("span", { class: change < 0 ? "down" : "up" }, text), one.certain ? "yes" : one.certain == null ? "?" : "no", one.state === "gone" ? make("span", {}, page(one.url), ", gone") : page(one.url)];
  };
  const heads = [["rank", "n"], ["was", "n"], ["importance", "n"], ["certain", "wide"], ["page", "url"]];
  return make("div", {}, soft(certain + diluted), found.movers.length ? table(heads, found.movers.map(row)) : none("No importance among the first 1,000 changed."), choice());
}
const failingHosts = (found, n) => found.hosts.length ? table([["failed", "n"], ["gone", "n"], ["host", "url"]],
  found.hosts.slice(0, n).map(host => [count(host.failed), count(host.gone), site(host.host)])) : none("None.");
// Shows the answers, and returns the snapshots that they come from: the newest may not be prepared yet.
async function ranking() {
  const of = new Set();
  await tell("top", async () => {
    const { top, snapshot } = await get("top?n=20");
    of.add(snapshot);
    return pages(top, "No pages yet.");
  });
  await tell("movers", async () => {
    const [shown, snapshot] = await movers();
    of.add(snapshot);
    return shown;
  });
  await tell("hosts", async () => {
    const { top } = await get("top?level=host&n=15");
    return table([["importance", "n"], ["pages", "n"], ["host", "url"]],
      top.map(host => [short(host.importance), count(host.pages), site(host.url)]));
  });
  await tell("failing", async () => {
    const found = await get("failures?n=10");
    of.add(found.snapshot);
    return failingHosts(found, 10);
  });
  await tell("covered", async () => {
    const found = await get("coverage?n=15");
    of.add(found.snapshot);
    const hosts = found.hosts.filter(host => host.unread > 0);
    show("unread", hosts.length ? table([["of all, %", "n"], ["pages", "n wide"], ["read", "n"], ["host", "url"]],
      hosts.map(host => [short(100 * host.unread), count(host.pages), count(host.read), site(host.host)])) : none("Nowhere."));
    return make("div", {}, soft(`at least ${(Math.floor(1000 * found.at_least) / 10).toFixed(1)} %, at most ${(Math.ceil(1000 * found.at_most) / 10).toFixed(1)} %; seeds: ${count(found.seeds)}`));
  });
  await tell("next", async () => {
    const { next, records, snapshot } = await get("next?n=15");
    of.add(snapshot);
    show("next-note", `as of ${many(records, "record")}`);
    return next.length ? table([["score", "n"], ["page", "url"]], next.map(one => [short(one.score), page(one.url)])) : none("No pages left to crawl.");
  });
  return of;
}

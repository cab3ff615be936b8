// The views of a page, a host, a search and failures; and which one is shown.
// The address of a search; without `within` the service chooses how far it goes.
const search = parameters => `search?${new URLSearchParams(Object.entries(parameters).filter(([, value]) => value))}`;
const outside = url => isUrl(url) ? make("a", { href: url, rel: "noreferrer noopener" }, "open it on the web") : "";
async function linksOf(id, path, verb) {
  await tell(id, async () => {
    const found = await get(path);
    const all = found.links_kept ?? 0, read = found.links_read ?? 0;
    const note = read < all ? soft(`Looked at the first ${count(read)} of ${count(all)} links. `,
      make("a", { href: `${path}&within=${all}` }, "Look at all, as JSON")) : "";
    const links = found.links.map(link => [count(link.rank), page(link.url)]);
    return make("div", {}, soft(found.gone ? "The page is gone; " : "", `${many(found.count, "page")} ${verb}`, found.count > links.length ? `; the ${links.length} of best rank` : ""), note,
      links.length ? table([["rank", "n"], ["page", "url"]], links) : "");
  });
}
async function pageView(view, { url }) {
  const host = hostOf(url);
  view.replaceChildren(make("h2", { class: "title" }, url), two(section("Page", "", "facts")),
    two(section("Links to it", "best rank first", "in"), section("Its links", "of its last visit, best rank first", "out")),
    ...(host ? [two(section("On the same host", "best rank first", "near"))] : []));
  const asked = encodeURIComponent(url);
  await tell("facts", async () => {
    const [found] = (await get(`rank?url=${asked}`)).pages;
    if (!found.known) return none("This page is unknown.");
    const pagesKnown = known?.pages;
    return make("div", {}, facts([["rank", count(found.rank)], ["importance", short(found.importance)],
      ...(pagesKnown ? [["times the mean page", short(found.importance * pagesKnown)]] : []),
      ["percentile", found.percentile.toFixed(3)], ...(found.state ? [["state", found.state]] : []), ["crawled", count(found.visits)], ["last fetch", time(found.last_fetch)],
      ["failed fetches since", count(found.failed)], ["found changed", `${count(found.changed)} of ${count(found.compared)}`]]),
      soft(...(host ? ["host ", make("a", { href: to("host", { name: host }) }, host), "; "] : []), outside(url)));
  });
  await linksOf("in", `links?url=${asked}&n=20&in`, "link to it");
  await linksOf("out", `links?url=${asked}&n=20`, "are linked");
  if (host) await tell("near", async () => {
    const found = await get(search({ scope: `host:${host}`, n: 15 }));
    return make("div", {}, pages(found.best.filter(one => one.url !== url), "No other page of this host is known."), looked(found, "host", { name: host }));
  });
}
// How far a search went, where it did not go through all pages.
const looked = (found, view, parameters) => found.searched < found.pages ? soft(`Looked at the first ${count(found.searched)} of ${count(found.pages)} pages, in order of their first appearance. `,
  make("a", { href: to(view, { ...parameters, within: 10 * found.searched }) }, "Look further")) : "";
const listed = (title, note, id, list, empty) => section(title, note, id, pages(list, empty));
function foundLists(found) {
  return [two(listed("Best pages", "", "best", found.best, "None."), listed("Frontier", "known, not crawled", "frontier", found.best_frontier, "None.")),
    two(listed("Last fetch failed", "", "failed", found.best_failed, "None."), listed("Gone", "404 or 410", "gone", found.best_gone, "None."))];
}
const foundCounts = found => [["pages", count(found.found)], ["crawled", count(found.visited)], ["frontier (known, not crawled)", count(found.frontier)],
  ["last fetch failed", count(found.failed)], ["gone (404, 410)", count(found.gone)]];
async function hostView(view, { name, within }) {
  view.replaceChildren(make("h2", { class: "title" }, name), none("Looking ..."));
  const found = await get(search({ scope: `host:${name}`, n: 15, within }));
  view.replaceChildren(view.firstChild, two(section("Host", "", "facts", facts(foundCounts(found)), looked(found, "host", { name })), section("Among all hosts", "", "ranked")), ...foundLists(found));
  await tell("ranked", async () => {
    const [site] = (await get(`rank?level=host&url=${encodeURIComponent(name)}`)).pages;
    return site.known ? facts([["rank among hosts", count(site.rank)], ["importance of all its pages", short(site.importance)], ["percentile", site.percentile.toFixed(3)]]) : none("This host is unknown.");
  });
}
async function searchView(view, { text, within }) {
  at("text").value = text;
  view.replaceChildren(make("h2", { class: "title" }, `Pages with \u201c${text}\u201d in their URL`), none("Looking ..."));
  const asked = encodeURIComponent(text);
  const [exact] = (await get(`rank?url=${asked}`)).pages;
  const found = await get(search({ text, n: 25, within }));
  const hit = exact.known ? [two(section("This page", "", "exact", table([["rank", "n"], ["page", "url"]], [[count(exact.rank), page(text)]])))] : [];
  view.replaceChildren(view.firstChild, ...hit, two(section("Found", "", "facts", facts(foundCounts(found)), looked(found, "search", { text }))), ...foundLists(found));
}
async function failuresView(view) {
  view.replaceChildren(make("h2", { class: "title" }, "Fetches that failed, and pages that are gone"), none("Looking ..."));
  const found = await get("failures?n=50");
  view.replaceChildren(view.firstChild,
    soft(`${many(found.failed, "page")} whose last fetch failed (no answer, or a status that says neither what the page is nor that it is gone); ${count(found.gone)} gone (404, 410)`,
      found.elsewhere ? `; ${count(found.elsewhere)} on hosts that are not listed` : ""),
    two(section("Hosts", "most such pages first", "hosts", failingHosts(found, 50)), section("Skipped records", "by reason", "skipped")),
    two(listed("Last fetch failed", "best rank first", "failed", found.best_failed, "None."),
      listed("Gone", "best rank first", "gone", found.best_gone, "None.")));
  if (known) counts(known);
}

const VIEWS = { page: pageView, host: hostView, search: searchView, failures: failuresView };
let known, shown, busy = false, current = "";
async function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const view = make("main", { id: "view", tabindex: "-1" });
  at("view").replaceWith(view);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#/${path}`) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  current = path;
  const special = VIEWS[path];
  document.title = special ? `${new URLSearchParams(query).values().next().value ?? path} \u2013 cashrank` : "cashrank";
  scrollTo(0, 0);
  if (!special) { shown = undefined; overview(view); return refresh(); }
  view.focus({ preventScroll: true });
  try { await special(view, Object.fromEntries(new URLSearchParams(query))); } catch (error) {
    if (view.isConnected) view.append(none(error.message));
  }
}
addEventListener("hashchange", route);
at("skip").addEventListener("click", event => {
  event.preventDefault();
  at("view").focus();
});
at("ask").addEventListener("submit", event => {
  event.preventDefault();
  const text = at("text").value.trim();
  if (text) location.hash = to("search", { text });
});
addEventListener("keydown", event => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input")) return;
  event.preventDefault();
  at("text").focus();
});

function state(kind, text) {
  at("state").className = kind;
  at("state").textContent = text;
}
function reading(status) {
  const run = status.reading;
  state("live", run ? `reading ${run.input}` + (run.inputs > 1 ? ` (${run.input_number} of ${run.inputs})` : "")
    + (run.passes > 1 ? `, pass ${run.pass} of ${run.passes}` : "")
    + (run.input_bytes ? `, ${Math.min(100, 100 * run.read_bytes / run.input_bytes).toFixed(1)} %` : "") : status.ingesting ? "another process writes to the store" : "idle: no ingest is running");
  at("store").textContent = status.store;
}
function refresh() {
  if (!known || current || busy || known.snapshot === shown) return;
  busy = true;
  const of = known.snapshot;
  // Slow answers must not delay the counts. Answers from an older snapshot are requested again.
  ranking().then(found => { if ([...found].every(one => one === of)) shown = of; }).finally(() => { busy = false; });
}
const EVERY_MS = 2000, LONGEST_MS = 30000;
let wait = EVERY_MS;
async function poll() {
  try {
    known = await get("status");
    wait = EVERY_MS;
    reading(known);
    counts(known);
    refresh();
  } catch (error) {
    state("lost", error.status ? error.message : "no answer: has cashrank stopped? Trying again");
    wait = Math.min(LONGEST_MS, wait * 2);
  }
  setTimeout(poll, document.hidden ? LONGEST_MS : wait);
}
route();
poll();

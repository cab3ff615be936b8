"""The links that our reader of HTML finds, beside those that lxml and html5lib find. See README.md."""

import json
import pathlib
import re
import sys
from collections import Counter

import html5lib
import lxml.html
from warcio.archiveiterator import ArchiveIterator

REFRESH = re.compile(r"""[\s]*[\d.]+\s*[;,\s]\s*(?:url\s*=\s*)?(?:(['"])(.*?)(?:\1.*)?|(.*))$""", re.I | re.S)


def export(folder, every, paths):
    """Writes the HTML of the responses of WARC files, one of `every`, into a folder, a file a page."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(paths):
        count = 0
        with open(path, "rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type != "response" or not record.http_headers:
                    continue
                kind = record.http_headers.get_header("Content-Type") or ""
                if not re.match(r"\s*(text/html|application/xhtml\+xml)\b", kind, re.I):
                    continue
                count += 1
                if count % every:
                    continue
                name = f"{number:02}-{count:06}"
                (folder / f"{name}.html").write_bytes(record.content_stream().read())
                named = re.search(r"charset\s*=\s*[\"']?([^\s;\"']+)", kind, re.I)
                if named:
                    (folder / f"{name}.charset").write_text(named[1])
        print(path, count, "pages", file=sys.stderr)


def links(elements):
    """Of elements in document order: the links, as `formats/html.md` says what is one."""
    for element in elements:
        name = element.tag
        if not isinstance(name, str):
            continue
        name = name.rsplit("}", 1)[-1]
        if name in ("a", "area") and element.get("href") is not None:
            yield element.get("href")
        elif name == "meta" and (element.get("http-equiv") or "").lower() == "refresh":
            found = REFRESH.match(element.get("content") or "")
            url = found and (found[2] or found[3])
            if url and url.strip():
                yield url


def by_lxml(body, charset):
    if not body.strip():
        return []
    parser = lxml.html.HTMLParser(encoding=charset, huge_tree=True)
    tree = lxml.html.document_fromstring(body, parser=parser, ensure_head_body=True)
    return list(links(tree.iter()))


def by_html5lib(body, charset):
    tree = html5lib.parse(body, transport_encoding=charset)
    return list(links(tree.iter()))


def plain(link):
    """Line ends are the URL parser's business."""
    return re.sub(r"[\r\n]+", "\n", link)


def compare(folder, ours, other, parse):
    folder = pathlib.Path(folder)
    pages = total = different = 0
    length = Counter()
    for line in open(ours, encoding="utf-8"):
        page = json.loads(line)
        charset = folder / page["page"].replace(".html", ".charset")
        charset = charset.read_text() if charset.exists() else None
        try:
            theirs = parse((folder / page["page"]).read_bytes(), charset)
        except Exception as error:
            print(f"{page['page']}: {other} fails: {error}")
            continue
        found = [plain(link) for link in page["links"]]
        theirs = [plain(link) for link in theirs]
        pages, total = pages + 1, total + len(theirs)
        file = page["page"].split("-")[0]
        length[file, "links"] += len(theirs)
        length[file, "bytes"] += sum(len(link.encode(errors="replace")) for link in theirs)
        if found != theirs:
            less, more = Counter(theirs) - Counter(found), Counter(found) - Counter(theirs)
            differ = max(sum(less.values()), sum(more.values())) or 1
            different += differ
            print(f"{page['page']}: {len(found)} links, {other} {len(theirs)};"
                  f" only {other}: {list(less.items())[:3]}, only we: {list(more.items())[:3]}")
    for key in sorted(length):
        print(f"{other}: file {key[0]}: {length[key]} {key[1]}")
    print(f"{other}: {pages} pages, {total} links, {different} different ({100 * different / max(total, 1):.4f} %)")


def main():
    if sys.argv[1:2] == ["export"]:
        export(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    elif sys.argv[1:2] == ["compare"]:
        compare(sys.argv[2], sys.argv[3], "lxml", by_lxml)
        compare(sys.argv[2], sys.argv[3], "html5lib", by_html5lib)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

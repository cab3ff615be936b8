//! A small site with odd contents, served on this machine until it is dropped.

use std::collections::{BTreeSet, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Address of the site: the answer, and the links that a correct crawler finds there.
struct Page {
    path: &'static str,
    status: &'static str,
    header: &'static str,
    body: &'static [u8],
    links: &'static [&'static str],
}

const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";

const PAGES: [Page; 9] = [
    // Relative, repeated, with fragments, refused by the page, to a missing page, and not a link at all.
    Page {
        path: "/",
        status: "200 OK",
        header: HTML,
        body: b"<title>Start</title><a href=a.html>a</a> <A HREF='/b.html#top'>b</A> <a href=\"./b.html\">b again</a>\
            <a href=old>old</a> <a href=/missing.html>missing</a> <a rel=\"noopener nofollow\" href=d.html>d</a>\
            <a href=mailto:a@b.example>mail</a> <!-- <a href=island.html>no</a> --> <a>no</a>",
        links: &["/a.html", "/b.html", "/old", "/missing.html", "/d.html"],
    },
    Page {
        path: "/a.html",
        status: "200 OK",
        header: HTML,
        body: b"<base href=\"/dir/\"><a href=c.html>c</a> <a href=../>start</a>",
        links: &["/dir/c.html", "/"],
    },
    // A link to the page itself, which is dropped.
    Page {
        path: "/b.html",
        status: "200 OK",
        header: HTML,
        body: b"<p id=top><a href=#top>up</a> <a href=\"a.html?x=1&amp;y=2\">a with a query</a>",
        links: &["/a.html?x=1&y=2"],
    },
    Page {
        path: "/a.html?x=1&y=2",
        status: "200 OK",
        header: HTML,
        body: b"<area href=/>",
        links: &["/"],
    },
    // ISO 8859-1, according to the header.
    Page {
        path: "/dir/c.html",
        status: "200 OK",
        header: "Content-Type: text/html; charset=iso-8859-1\r\n",
        body: b"<p>caf\xE9 <a href=/b.html>b, \xE9</a> <a href=c.html>here</a>",
        links: &["/b.html"],
    },
    Page {
        path: "/old",
        status: "302 Found",
        header: "Location: /new.html\r\nContent-Type: text/html\r\n",
        body: b"<a href=/island.html>moved</a>",
        links: &["/new.html"],
    },
    Page {
        path: "/new.html",
        status: "200 OK",
        header: HTML,
        body: b"<a href=d.html>d</a>",
        links: &["/d.html"],
    },
    Page {
        path: "/d.html",
        status: "200 OK",
        header: HTML,
        body: b"no links",
        links: &[],
    },
    // No link leads here.
    Page {
        path: "/island.html",
        status: "200 OK",
        header: HTML,
        body: b"<a href=/>start</a>",
        links: &["/"],
    },
];

/// Link with `rel=nofollow`.
const NOFOLLOW: (&str, &str) = ("/", "/d.html");

/// Site while it is served.
pub struct Site {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    asked: Arc<Mutex<HashSet<String>>>,
    server: Option<JoinHandle<()>>,
}

impl Site {
    pub fn start() -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (stopped, note) = (stop.clone(), Arc::clone(&asked));
        let server = thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(stream) = stream {
                    let note = Arc::clone(&note);
                    // Errors of a client that goes away are ignored.
                    thread::spawn(move || answer(stream, &note));
                }
            }
        });
        Site {
            address,
            stop,
            asked,
            server: Some(server),
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn was_asked(&self, path: &str) -> bool {
        self.asked.lock().unwrap().contains(path)
    }

    /// Returns the number of addresses that answer a crawl from the start, including the missing page.
    pub fn pages_served(&self) -> usize {
        self.reachable().count() + 1
    }

    /// Returns the number of pages known after such a crawl; all of them are fetched.
    pub fn pages_known(&self) -> usize {
        let links = self.reachable().flat_map(|page| page.links);
        links.collect::<BTreeSet<_>>().len()
    }

    /// Returns the links of such a crawl, as records, with or without the one marked `rel=nofollow`.
    pub fn known_links(&self, with_nofollow: bool) -> String {
        let record = |page: &Page| {
            let links = page.links.iter();
            let links = links.filter(|&&to| with_nofollow || (page.path, to) != NOFOLLOW);
            let links: Vec<String> = links.map(|path| self.url(path)).collect();
            format!(
                "{}\n",
                serde_json::json!({"url": self.url(page.path), "links": links})
            )
        };
        self.reachable().map(record).collect()
    }

    fn reachable(&self) -> impl Iterator<Item = &'static Page> {
        PAGES.iter().filter(|page| page.path != "/island.html")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes up the server.
        let _ = TcpStream::connect(self.address);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

fn answer(stream: TcpStream, asked: &Mutex<HashSet<String>>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut lines = BufReader::new(&stream).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    asked.lock().unwrap().insert(path.to_owned());
    let missing = Page {
        path: "",
        status: "404 Not Found",
        header: HTML,
        body: b"<a href=/island.html>nothing here</a>",
        links: &[],
    };
    let page = PAGES
        .iter()
        .find(|page| page.path == path)
        .unwrap_or(&missing);
    let mut out = &stream;
    write!(
        out,
        "HTTP/1.1 {}\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n",
        page.status,
        page.header,
        page.body.len()
    )?;
    if method != "HEAD" {
        out.write_all(page.body)?;
    }
    out.flush()
}

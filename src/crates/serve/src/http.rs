//! From a request to its answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use serde::Serialize;
use tonic::body::Body;
use tonic::codegen::Service as _;

use crate::access::{self, Token};
use crate::backend::{Backend, NextQuery, Problem, Result};
use crate::frontier::Server;
use crate::limits::Limits;
use crate::metrics;
use crate::query::Query;
use crate::workers::{Pace, Workers};

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) token: Option<Token>,
    pub(crate) limits: Limits,
    pub(crate) pace: Pace,
    pub(crate) workers: Workers,
    /// The frontier's calls, if there is one.
    pub(crate) calls: Option<Server>,
}

const PAGE: &str = include_str!("page.html");
const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";
/// The page needs nothing from elsewhere, and may load nothing from there.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const PATHS: &str = "/, /status, /top, /movers, /hosts, /rank, /links, /next, /metrics";

/// Where the frontier's calls are.
const CALLS: &str = "/urlfrontier.URLFrontier/";

/// An answer's kind and bytes.
struct Found {
    kind: &'static str,
    bytes: Vec<u8>,
}

/// What is asked of the backend, checked.
enum Wanted {
    Page,
    Status,
    Metrics,
    Top(usize),
    Movers(usize),
    Hosts(usize),
    Rank(Vec<String>),
    Links(String, usize),
    Next(NextQuery, NextFormat),
}

#[derive(Clone, Copy)]
enum NextFormat {
    Json,
    Plain,
}

/// The answer to a request, or to a call of gRPC.
pub(crate) async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> std::result::Result<Response<Body>, Infallible> {
    if !shared.pace.take(Instant::now()) {
        let text = "too many requests a second";
        return Ok(refusal(StatusCode::TOO_MANY_REQUESTS, text).map(Body::new));
    }
    if let Err((status, why)) = access::check(shared.token.as_ref(), &request) {
        return Ok(refusal(status, why).map(Body::new));
    }
    if let Some(calls) = &shared.calls
        && request.uri().path().starts_with(CALLS)
    {
        if request.version() != Version::HTTP_2 {
            let text = "calls of gRPC come over HTTP/2";
            return Ok(refusal(StatusCode::HTTP_VERSION_NOT_SUPPORTED, text).map(Body::new));
        }
        return calls.clone().call(request).await;
    }
    Ok(answered(shared, &request).await.map(Body::new))
}

/// The answer to a question.
async fn answered(shared: Arc<Shared>, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let text = "the service only answers questions: GET or HEAD";
        return refusal(StatusCode::METHOD_NOT_ALLOWED, text);
    }
    let wanted = match wanted(&shared.limits, request.uri().path(), request.uri().query()) {
        Ok(wanted) => wanted,
        Err(problem) => return refusal_of(&problem),
    };
    let found = match wanted {
        Wanted::Page => Ok(Found {
            kind: HTML,
            bytes: PAGE.into(),
        }),
        wanted => {
            let job = shared.clone();
            shared.workers.run(move || found(&job, wanted)).await
        }
    };
    match found {
        Ok(found) => response(StatusCode::OK, found),
        Err(problem) => refusal_of(&problem),
    }
}

/// Reads a path and its query.
fn wanted(limits: &Limits, path: &str, query: Option<&str>) -> Result<Wanted> {
    let mut query = Query::parse(query);
    let pages = limits.pages;
    let (wanted, known) = match path {
        "/" => (Wanted::Page, "none"),
        "/status" => (Wanted::Status, "none"),
        "/metrics" => (Wanted::Metrics, "none"),
        "/top" => (Wanted::Top(query.count("n", 20, pages)?), "n"),
        "/movers" => (Wanted::Movers(query.count("n", 20, pages)?), "n"),
        "/hosts" => (Wanted::Hosts(query.count("n", 20, pages)?), "n"),
        "/rank" => (Wanted::Rank(urls(&mut query, limits.urls)?), "url"),
        "/links" => {
            let url = query.one("url")?.ok_or_else(no_url)?;
            (Wanted::Links(url, query.count("n", 100, pages)?), "url, n")
        }
        "/next" => {
            let n = query.count("n", 100, limits.next_pages)?;
            let format = match query.one("to")?.as_deref() {
                None | Some("json") => NextFormat::Json,
                Some("plain") => NextFormat::Plain,
                Some(other) => {
                    return Err(Problem::Asked(format!("to={other}: json or plain")));
                }
            };
            let options = std::mem::replace(&mut query, Query::parse(None)).rest();
            (Wanted::Next(NextQuery { n, options }, format), "")
        }
        _ => {
            return Err(Problem::Unknown(format!(
                "there is nothing at this path; there is {PATHS}"
            )));
        }
    };
    query.end(known)?;
    Ok(wanted)
}

fn no_url() -> Problem {
    Problem::Asked("url: which page? Like ?url=https%3A%2F%2Fexample.org%2F".into())
}

fn urls(query: &mut Query, most: usize) -> Result<Vec<String>> {
    let urls = query.all("url");
    match urls.len() {
        0 => Err(no_url()),
        n if n > most => Err(Problem::Asked(format!(
            "url: {n} of them; at most {most} at once"
        ))),
        _ => Ok(urls),
    }
}

/// Asks the backend.
fn found(shared: &Shared, wanted: Wanted) -> Result<Found> {
    let backend = &*shared.backend;
    let most = shared.limits.answer_bytes;
    match wanted {
        Wanted::Page => Err(Problem::Failed("the page is not asked for here".into())),
        Wanted::Status => json(&backend.status()?, most),
        Wanted::Metrics => Ok(Found {
            kind: metrics::KIND,
            bytes: metrics::text(&backend.status()?).into(),
        }),
        Wanted::Top(n) => json(&backend.top(n)?, most),
        Wanted::Movers(n) => json(&backend.movers(n)?, most),
        Wanted::Hosts(n) => json(&serde_json::json!({ "hosts": backend.hosts(n)? }), most),
        Wanted::Rank(urls) => json(&serde_json::json!({ "pages": backend.rank(&urls)? }), most),
        Wanted::Links(url, n) => json(&backend.links(&url, n)?, most),
        Wanted::Next(query, format) => {
            let pages = backend.next(&query)?;
            match format {
                NextFormat::Json => json(&serde_json::json!({ "next": pages }), most),
                NextFormat::Plain => {
                    let lines = pages.into_iter().map(|page| page.url + "\n");
                    bounded(
                        "text/plain; charset=utf-8",
                        lines.collect::<String>().into(),
                        most,
                    )
                }
            }
        }
    }
}

fn json(value: &impl Serialize, most: usize) -> Result<Found> {
    let mut bytes =
        serde_json::to_vec(value).map_err(|error| Problem::Failed(error.to_string()))?;
    bytes.push(b'\n');
    bounded(JSON, bytes, most)
}

fn bounded(kind: &'static str, bytes: Vec<u8>, most: usize) -> Result<Found> {
    if bytes.len() > most {
        return Err(Problem::Asked(format!(
            "the answer would be of {} bytes, and may be of {most}: ask for fewer pages",
            bytes.len()
        )));
    }
    Ok(Found { kind, bytes })
}

fn response(status: StatusCode, found: Found) -> Response<Full<Bytes>> {
    let page = found.kind == HTML;
    let mut response = Response::new(Full::new(found.bytes.into()));
    *response.status_mut() = status;
    let mut set = |name: HeaderName, value: &'static str| {
        let headers = response.headers_mut();
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(header::CONTENT_TYPE, found.kind);
    set(header::CACHE_CONTROL, "no-store");
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    if page {
        set(header::CONTENT_SECURITY_POLICY, PAGE_POLICY);
        set(header::REFERRER_POLICY, "no-referrer");
    }
    match status {
        StatusCode::UNAUTHORIZED => set(header::WWW_AUTHENTICATE, "Basic realm=\"cashrank\""),
        StatusCode::METHOD_NOT_ALLOWED => set(header::ALLOW, "GET, HEAD"),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            set(header::RETRY_AFTER, "1");
        }
        _ => {}
    }
    response
}

fn refusal(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut bytes = serde_json::json!({ "error": text }).to_string();
    bytes.push('\n');
    let found = Found {
        kind: JSON,
        bytes: bytes.into(),
    };
    response(status, found)
}

fn refusal_of(problem: &Problem) -> Response<Full<Bytes>> {
    let status = match problem {
        Problem::Asked(_) => StatusCode::BAD_REQUEST,
        Problem::Unknown(_) => StatusCode::NOT_FOUND,
        Problem::Later(_) => StatusCode::SERVICE_UNAVAILABLE,
        Problem::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    refusal(status, &problem.to_string())
}

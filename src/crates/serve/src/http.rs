//! Routing: from a request to its answer.

use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use serde::Serialize;
use tokio::sync::{Semaphore, watch};

use crate::access::{self, Token};
use crate::backend::{Backend, NextList, NextPage, NextQuery, Problem, Result, ServiceStatus};
use crate::calls::{Body, CallHandler};
use crate::held::{ChunkedBody, PendingAnswers};
use crate::limits::ServiceLimits;
use crate::metrics;
use crate::query::Query;
use crate::strangers::Stranger;
use crate::workers::{Pace, Workers};

/// State that all requests share.
pub(crate) struct ServiceContext {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) token: Option<Token>,
    pub(crate) limits: ServiceLimits,
    pub(crate) pace: Pace,
    pub(crate) workers: Workers,
    /// Permits for untaken answers, one for each [`PLACE`] bytes.
    pub(crate) places: Arc<Semaphore>,
    /// Becomes true when the service ends.
    pub(crate) ended: watch::Receiver<bool>,
    /// Path prefix of calls of another protocol, if there are any, with the function that answers them.
    pub(crate) calls: Option<(&'static str, CallHandler)>,
}

/// Unit in which the bytes of answers are counted.
pub(crate) const PLACE: usize = 1 << 10;

/// Web page for people: a single document, with its parts inserted at their markers.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let parts = [
        ("/*page.css*/", include_str!("page/page.css")),
        ("/*draw.js*/", include_str!("page/draw.js")),
        ("/*overview.js*/", include_str!("page/overview.js")),
        ("/*views.js*/", include_str!("page/views.js")),
    ];
    let page = include_str!("page/page.html").to_owned();
    let put = |page: String, (name, part): (&str, &str)| page.replace(name, part);
    parts.into_iter().fold(page, put)
});
const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";
/// Content security policy: the page needs nothing from elsewhere, and may load nothing from there.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Interval at which a list in progress is checked for.
const LIST_EVERY: Duration = Duration::from_millis(25);
/// Maximum time for which `/end` waits for the end.
const END_WAIT: Duration = Duration::from_secs(25);

/// Content type and bytes of an answer.
struct ResponseContent {
    kind: &'static str,
    bytes: Vec<u8>,
    /// For a list: its mark and its age.
    list: Option<(HeaderValue, Option<u64>)>,
    /// True if the client has it already.
    unchanged: bool,
}

impl ResponseContent {
    fn new(kind: &'static str, bytes: Vec<u8>) -> ResponseContent {
        ResponseContent {
            kind,
            bytes,
            list: None,
            unchanged: false,
        }
    }
}

/// Validated request to the backend.
enum ServiceRequest {
    Page,
    Status,
    Metrics,
    End,
    /// Question for the backend, with its parameters.
    Question(&'static str, Vec<(String, String)>),
    Next(NextQuery, NextFormat),
}

#[derive(Clone, Copy)]
enum NextFormat {
    Json,
    Plain,
}

/// Answers a request or a call.
pub(crate) async fn answer(
    shared: Arc<ServiceContext>,
    held: PendingAnswers,
    stranger: Arc<Stranger>,
    request: Request<Incoming>,
) -> std::result::Result<Response<Body>, Infallible> {
    if let Err((status, why)) = access::check(shared.token.as_ref(), &request) {
        let mut refusal = refusal(status, why).map(|body| Box::new(held.body(body, None)) as Body);
        // HTTP/2 has no such header, so none is sent there.
        let close = HeaderValue::from_static("close");
        refusal.headers_mut().insert(header::CONNECTION, close);
        return Ok(refusal);
    }
    stranger.is_known();
    let waiting = |answer: Response<ChunkedBody>, place| {
        Ok(answer.map(|body| Box::new(held.body(body, place)) as Body))
    };
    if !shared.pace.take(Instant::now()) {
        let text = "too many requests a second";
        return waiting(refusal(StatusCode::TOO_MANY_REQUESTS, text), None);
    }
    if let Some((path, call)) = &shared.calls
        && request.uri().path().starts_with(path)
    {
        if request.version() != Version::HTTP_2 {
            let text = "gRPC calls need HTTP/2";
            return waiting(refusal(StatusCode::HTTP_VERSION_NOT_SUPPORTED, text), None);
        }
        let answer = call(request).await;
        return Ok(answer.map(|body| Box::new(held.body(body, None)) as Body));
    }
    let answer = answered(shared.clone(), &request).await;
    let places = (answer.body().0.len() / PLACE + 1) as u32;
    let Ok(place) = shared.places.clone().try_acquire_many_owned(places) else {
        let text = "too many answers are waiting for their clients";
        return waiting(refusal(StatusCode::SERVICE_UNAVAILABLE, text), None);
    };
    waiting(answer, Some(place))
}

/// Answers a question.
async fn answered(
    shared: Arc<ServiceContext>,
    request: &Request<Incoming>,
) -> Response<ChunkedBody> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let text = "the service only answers questions: GET or HEAD";
        return refusal(StatusCode::METHOD_NOT_ALLOWED, text);
    }
    let wanted = match wanted(&shared, request.uri().path(), request.uri().query()) {
        Ok(wanted) => wanted,
        Err(problem) => return refusal_of(&problem),
    };
    let found = match wanted {
        ServiceRequest::Page => Ok(ResponseContent::new(HTML, PAGE.as_bytes().into())),
        ServiceRequest::End => end(shared).await,
        ServiceRequest::Next(query, format) => {
            let known = request.headers().get(header::IF_NONE_MATCH).cloned();
            next(&shared, Arc::new((query, format, known))).await
        }
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

/// Parses a path and its query.
fn wanted(shared: &ServiceContext, path: &str, query: Option<&str>) -> Result<ServiceRequest> {
    let mut query = Query::parse(query);
    let wanted = match path {
        "/" => ServiceRequest::Page,
        "/status" => ServiceRequest::Status,
        "/metrics" => ServiceRequest::Metrics,
        "/end" => ServiceRequest::End,
        "/next" => {
            let n = query.count("n", 100, shared.limits.next_pages)?;
            let format = match query.one("to")?.as_deref() {
                None | Some("json") => NextFormat::Json,
                Some("plain") => NextFormat::Plain,
                Some(other) => {
                    return Err(Problem::Asked(format!("to={other}: json or plain")));
                }
            };
            let options = query.rest();
            return Ok(ServiceRequest::Next(NextQuery { n, options }, format));
        }
        path => {
            let questions = shared.backend.questions();
            let asked = path.strip_prefix('/').unwrap_or(path);
            return match questions.iter().find(|question| **question == asked) {
                Some(question) => Ok(ServiceRequest::Question(question, query.rest())),
                None => Err(Problem::Unknown(format!(
                    "no such path; there are /, /status, /{}, /next, /metrics and /end",
                    questions.join(", /")
                ))),
            };
        }
    };
    query.end("")?;
    Ok(wanted)
}

/// Answer of `/end`: whether the service is ending, and its final state.
#[derive(Serialize)]
struct End {
    ended: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<ServiceStatus>,
}

/// Waits until the service ends, or for some time, and answers which.
async fn end(shared: Arc<ServiceContext>) -> Result<ResponseContent> {
    let mut waiting = shared.ended.clone();
    let wait = tokio::time::timeout(END_WAIT, waiting.wait_for(|ended| *ended));
    let ended = wait.await.is_ok();
    let job = shared.clone();
    let answer = move || {
        let status = ended.then(|| job.backend.status()).transpose()?;
        json(&End { ended, status }, job.limits.answer_bytes)
    };
    let answer = shared.workers.run(answer).await;
    // Dropped last: a service that ends waits for this answer.
    drop(waiting);
    answer
}

/// Queries the backend.
fn found(shared: &ServiceContext, wanted: ServiceRequest) -> Result<ResponseContent> {
    let backend = &*shared.backend;
    let most = shared.limits.answer_bytes;
    match wanted {
        ServiceRequest::Page | ServiceRequest::Next(..) | ServiceRequest::End => {
            Err(Problem::Failed("this is not asked for here".into()))
        }
        ServiceRequest::Status => json(&backend.status()?, most),
        ServiceRequest::Metrics => {
            let text = metrics::text(&backend.status()?);
            Ok(ResponseContent::new(metrics::KIND, text.into()))
        }
        ServiceRequest::Question(question, parameters) => {
            line(backend.answer(question, &parameters)?, most)
        }
    }
}

/// Waits for a list. While it is being made, it is checked for at intervals, without occupying a worker.
async fn next(
    shared: &Arc<ServiceContext>,
    asked: Arc<(NextQuery, NextFormat, Option<HeaderValue>)>,
) -> Result<ResponseContent> {
    let until = tokio::time::Instant::now() + shared.limits.times.answer;
    loop {
        let (job, question) = (shared.clone(), asked.clone());
        let look = move || {
            let (query, format, known) = &*question;
            let list = job.backend.next(query)?;
            let listed =
                |list: Arc<NextList>| listed(&list, query.n, *format, known.as_ref(), &job.limits);
            list.map(listed).transpose()
        };
        if let Some(found) = shared.workers.run(look).await? {
            return Ok(found);
        }
        if tokio::time::Instant::now() >= until {
            let text = "the list is still being made: try again";
            return Err(Problem::Later(text.into()));
        }
        tokio::time::sleep(LIST_EVERY).await;
    }
}

/// List as JSON.
#[derive(Serialize)]
struct NextListJson<'a> {
    snapshot: &'a str,
    records: u64,
    age_seconds: Option<f64>,
    next: &'a [NextPage],
}

/// Returns the first `n` pages of a list.
fn listed(
    list: &NextList,
    n: usize,
    format: NextFormat,
    known: Option<&HeaderValue>,
    limits: &ServiceLimits,
) -> Result<ResponseContent> {
    let (pages, most) = (&list.pages[..n.min(list.pages.len())], limits.answer_bytes);
    let mark = HeaderValue::from_str(&format!("\"{}\"", list.version))
        .map_err(|error| Problem::Failed(error.to_string()))?;
    let since = list
        .made
        .and_then(|made| SystemTime::now().duration_since(made).ok());
    let mut found = match format {
        _ if known.is_some_and(|known| names(known, &mark)) => ResponseContent {
            unchanged: true,
            ..ResponseContent::new(JSON, Vec::new())
        },
        NextFormat::Json => json(
            &NextListJson {
                snapshot: &list.snapshot,
                records: list.records,
                age_seconds: since.map(|since| since.as_millis() as f64 / 1e3),
                next: pages,
            },
            most,
        )?,
        NextFormat::Plain => {
            let lines = pages.iter().map(|page| format!("{}\n", page.url));
            let text = lines.collect::<String>();
            bounded("text/plain; charset=utf-8", text.into(), most)?
        }
    };
    found.list = Some((mark, since.map(|since| since.as_secs())));
    Ok(found)
}

/// Returns whether `If-None-Match` names this mark (RFC 9110, section 13.1.2): a list, compared weakly, or `*`.
fn names(known: &HeaderValue, mark: &HeaderValue) -> bool {
    let mut known = known.as_bytes().split(|&byte| byte == b',');
    known.any(|one| {
        let one = one.trim_ascii();
        one == b"*" || one.strip_prefix(b"W/").unwrap_or(one) == mark.as_bytes()
    })
}

fn json(value: &impl Serialize, most: usize) -> Result<ResponseContent> {
    let bytes = serde_json::to_vec(value).map_err(|error| Problem::Failed(error.to_string()))?;
    line(bytes, most)
}

/// Returns JSON as one line.
fn line(mut json: Vec<u8>, most: usize) -> Result<ResponseContent> {
    json.push(b'\n');
    bounded(JSON, json, most)
}

fn bounded(kind: &'static str, bytes: Vec<u8>, most: usize) -> Result<ResponseContent> {
    if bytes.len() > most {
        return Err(Problem::Asked(format!(
            "the answer would take {} bytes, more than {most}: ask for fewer pages",
            bytes.len()
        )));
    }
    Ok(ResponseContent::new(kind, bytes))
}

fn response(status: StatusCode, found: ResponseContent) -> Response<ChunkedBody> {
    let page = found.kind == HTML;
    let status = if found.unchanged {
        StatusCode::NOT_MODIFIED
    } else {
        status
    };
    let mut response = Response::new(ChunkedBody(found.bytes.into()));
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
    if let Some((mark, age)) = found.list {
        let headers = response.headers_mut();
        headers.insert(header::ETAG, mark);
        if let Some(age) = age {
            headers.insert(header::AGE, age.into());
        }
    }
    let mut set = |name: HeaderName, value: &'static str| {
        let headers = response.headers_mut();
        headers.insert(name, HeaderValue::from_static(value));
    };
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

fn refusal(status: StatusCode, text: &str) -> Response<ChunkedBody> {
    let mut bytes = serde_json::json!({ "error": text }).to_string();
    bytes.push('\n');
    response(status, ResponseContent::new(JSON, bytes.into()))
}

fn refusal_of(problem: &Problem) -> Response<ChunkedBody> {
    let status = match problem {
        Problem::Asked(_) => StatusCode::BAD_REQUEST,
        Problem::Unknown(_) => StatusCode::NOT_FOUND,
        Problem::Later(_) => StatusCode::SERVICE_UNAVAILABLE,
        Problem::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    refusal(status, &problem.to_string())
}

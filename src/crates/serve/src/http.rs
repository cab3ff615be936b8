//! Paths of the service with their handlers, and the layers around all answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap};
use axum::http::{Method, StatusCode, Uri, Version};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::access::{self, Token};
use crate::server::{AnswerPlace, ServiceLimits};
use crate::workers::Workers;
use crate::{Backend, NextList, NextPage, NextQuery, Problem, Result};

pub(crate) struct ServiceContext {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) token: Option<Token>,
    pub(crate) limits: ServiceLimits,
    pub(crate) workers: Workers,
    /// Permits for untaken answers, one for each [`PLACE`] bytes.
    pub(crate) places: Arc<Semaphore>,
}

/// Extension of a request that is set once its connection has sent an admissible request.
#[derive(Clone, Default)]
pub(crate) struct KnownClient(pub(crate) Arc<AtomicBool>);

/// Unit in bytes in which the length of answers is counted.
pub(crate) const PLACE: usize = 1 << 10;

/// Web page for people: a single document, with its parts inserted at their markers.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    include_str!("page/page.html")
        .replace("/*page.css*/", include_str!("page/page.css"))
        .replace("/*draw.js*/", include_str!("page/draw.js"))
        .replace("/*overview.js*/", include_str!("page/overview.js"))
        .replace("/*views.js*/", include_str!("page/views.js"))
});
const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Content security policy: the page needs nothing from elsewhere, and may load nothing from there.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const LIST_EVERY: Duration = Duration::from_millis(25);
type Context = State<Arc<ServiceContext>>;
type Parameters = Vec<(String, String)>;

pub(crate) fn routes(context: Arc<ServiceContext>, calls: Option<Router>) -> Router {
    let questions = Router::new()
        .route("/", any(page))
        .route("/status", any(status))
        .route("/metrics", any(metrics))
        .route_layer(from_fn(without_parameters))
        .route("/next", any(next))
        .fallback(question)
        .with_state(context.clone())
        .layer(from_fn(only_questions));
    let calls = calls.map(|calls| calls.layer(from_fn(only_http_2)));
    let all = questions.merge(calls.unwrap_or_default());
    all.layer(from_fn_with_state(context, admit))
}

/// Layer around everything: access, and the memory for untaken answers.
async fn admit(State(context): Context, request: Request, next: Next) -> Response {
    if let Err((status, why)) = access::check(context.token.as_ref(), &request) {
        // HTTP/2 has no such header, so none is sent there.
        return ([(header::CONNECTION, "close")], refusal(status, why)).into_response();
    }
    if let Some(known) = request.extensions().get::<KnownClient>() {
        known.0.store(true, Ordering::Relaxed);
    }
    let mut answer = next.run(request).await;
    // A stream has no length: it takes the memory of a piece.
    let Some(length) = answer.body().size_hint().exact() else {
        return answer;
    };
    let places = (length as usize / PLACE + 1) as u32;
    match context.places.clone().try_acquire_many_owned(places) {
        Ok(place) => {
            answer.extensions_mut().insert(AnswerPlace::new(place));
            answer
        }
        Err(_) => refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many answers are waiting for their clients",
        ),
    }
}

/// Layer around questions, which change nothing.
async fn only_questions(request: Request, next: Next) -> Response {
    if [Method::GET, Method::HEAD].contains(request.method()) {
        return next.run(request).await;
    }
    let text = "the service only answers questions: GET or HEAD";
    refusal(StatusCode::METHOD_NOT_ALLOWED, text)
}

async fn only_http_2(request: Request, next: Next) -> Response {
    if request.version() == Version::HTTP_2 {
        return next.run(request).await;
    }
    let text = "gRPC calls need HTTP/2";
    refusal(StatusCode::HTTP_VERSION_NOT_SUPPORTED, text)
}

async fn without_parameters(request: Request, next: Next) -> Result<Response> {
    match parameters(request.uri().query()).first() {
        None => Ok(next.run(request).await),
        Some((name, _)) => Err(Problem::Asked(format!(
            "{name}: unknown parameter; there are none here"
        ))),
    }
}

async fn page() -> Response {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    let page = response(StatusCode::OK, HTML, PAGE.as_bytes().into());
    (headers, page).into_response()
}

async fn status(State(context): Context) -> Result<Response> {
    context.ask(|backend| backend.status()).await
}

async fn metrics(State(context): Context) -> Result<Response> {
    let job = context.clone();
    let text = context.workers.run(move || job.backend.metrics()).await?;
    Ok(response(StatusCode::OK, PROMETHEUS, text.into()))
}

async fn question(State(context): Context, uri: Uri) -> Result<Response> {
    let questions = context.backend.questions();
    let name = uri.path().strip_prefix('/').unwrap_or(uri.path());
    let Some(question) = questions.iter().find(|question| **question == name) else {
        return Err(Problem::Unknown(format!(
            "no such path; there are /, /status, /{}, /next and /metrics",
            questions.join(", /")
        )));
    };
    let parameters = parameters(uri.query());
    let answer = context.ask(move |backend| backend.answer(question, &parameters));
    answer.await
}

impl ServiceContext {
    async fn ask(
        self: &Arc<ServiceContext>,
        job: impl FnOnce(&dyn Backend) -> Result<Vec<u8>> + Send + 'static,
    ) -> Result<Response> {
        let context = self.clone();
        let json = self.workers.run(move || job(&*context.backend)).await?;
        self.bounded(JSON, line(json))
    }

    fn bounded(&self, kind: &'static str, bytes: Vec<u8>) -> Result<Response> {
        let most = self.limits.answer_bytes;
        if bytes.len() > most {
            return Err(Problem::Asked(format!(
                "the answer would take {} bytes, more than {most}: ask for fewer pages",
                bytes.len()
            )));
        }
        Ok(response(StatusCode::OK, kind, bytes))
    }

    /// Returns the first `n` pages of a list, unless the client has it already (`If-None-Match`).
    fn listed(
        &self,
        list: &NextList,
        n: usize,
        kind: &'static str,
        headers: &HeaderMap,
    ) -> Result<Response> {
        let mark = format!("\"{}\"", list.version);
        let known = headers.get(header::IF_NONE_MATCH);
        let mut known = known
            .map_or(&b""[..], |known| known.as_bytes())
            .split(|&byte| byte == b',');
        let is_mark = |one: &[u8]| {
            let one = one.trim_ascii();
            one == b"*" || one.strip_prefix(b"W/").unwrap_or(one) == mark.as_bytes()
        };
        let age = list.made.and_then(|made| made.elapsed().ok());
        let pages = &list.pages[..n.min(list.pages.len())];
        let answer = if known.any(is_mark) {
            response(StatusCode::NOT_MODIFIED, JSON, Vec::new())
        } else if kind == PLAIN {
            let lines = pages.iter().map(|page| format!("{}\n", page.url));
            self.bounded(PLAIN, lines.collect::<String>().into())?
        } else {
            let json = serde_json::to_vec(&NextListJson {
                snapshot: &list.snapshot,
                records: list.records,
                age_seconds: age.map(|age| age.as_millis() as f64 / 1e3),
                next: pages,
            });
            self.bounded(
                JSON,
                line(json.map_err(|error| Problem::Failed(error.to_string()))?),
            )?
        };
        let age = age.map(|age| [(header::AGE, age.as_secs())]);
        Ok(([(header::ETAG, mark)], age, answer).into_response())
    }
}

#[derive(Serialize)]
struct NextListJson<'a> {
    snapshot: &'a str,
    records: u64,
    age_seconds: Option<f64>,
    next: &'a [NextPage],
}

/// Waits for a list. While it is being made, it is checked for at intervals, without occupying a worker.
async fn next(State(context): Context, headers: HeaderMap, uri: Uri) -> Result<Response> {
    let mut options = parameters(uri.query());
    let most = context.limits.next_pages;
    let n = match take(&mut options, "n")? {
        None => most.min(100),
        Some(text) => {
            let n = text.parse().ok().filter(|n| (1..=most).contains(n));
            let wrong = || Problem::Asked(format!("n={text}: a whole number from 1 to {most}"));
            n.ok_or_else(wrong)?
        }
    };
    let kind = match take(&mut options, "to")?.as_deref() {
        None | Some("json") => JSON,
        Some("plain") => PLAIN,
        Some(other) => return Err(Problem::Asked(format!("to={other}: json or plain"))),
    };
    let question = Arc::new((NextQuery { n, options }, headers));
    let until = tokio::time::Instant::now() + context.limits.answer_time;
    loop {
        let (job, question) = (context.clone(), question.clone());
        let look = move || {
            let (query, headers) = &*question;
            let list = job.backend.next(query)?;
            list.map(|list| job.listed(&list, query.n, kind, headers))
                .transpose()
        };
        if let Some(found) = context.workers.run(look).await? {
            return Ok(found);
        }
        if tokio::time::Instant::now() >= until {
            let text = "the list is still being made: try again";
            return Err(Problem::Later(text.into()));
        }
        tokio::time::sleep(LIST_EVERY).await;
    }
}

fn parameters(query: Option<&str>) -> Parameters {
    let query = query.unwrap_or_default().as_bytes();
    form_urlencoded::parse(query).into_owned().collect()
}

/// Removes and returns the value of a parameter; refuses a repeated one.
fn take(parameters: &mut Parameters, name: &str) -> Result<Option<String>> {
    let mut found = parameters.extract_if(.., |(key, _)| key == name);
    let value = found.next().map(|(_, value)| value);
    if found.next().is_some() {
        return Err(Problem::Asked(format!("{name}: given more than once")));
    }
    Ok(value)
}

fn line(mut json: Vec<u8>) -> Vec<u8> {
    json.push(b'\n');
    json
}

fn response(status: StatusCode, kind: &'static str, bytes: Vec<u8>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, bytes).into_response()
}

fn refusal(status: StatusCode, text: &str) -> Response {
    let json = serde_json::json!({ "error": text }).to_string();
    let further = match status {
        StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Basic realm=\"cashrank\"")),
        StatusCode::METHOD_NOT_ALLOWED => Some((header::ALLOW, "GET, HEAD")),
        StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
        _ => None,
    };
    let further = further.map(|further| [further]);
    (further, response(status, JSON, line(json.into()))).into_response()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = match self {
            Problem::Asked(_) => StatusCode::BAD_REQUEST,
            Problem::Unknown(_) => StatusCode::NOT_FOUND,
            Problem::Later(_) => StatusCode::SERVICE_UNAVAILABLE,
            Problem::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        refusal(status, &self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_checked() {
        let query = || parameters(Some("url=http%3A%2F%2Fa%2F%3Fx%3D1&n=7&url=b+c"));
        let url = |value: &str| ("url".to_owned(), value.to_owned());
        let mut all = query();
        assert_eq!(take(&mut all, "n"), Ok(Some("7".into())));
        assert_eq!(take(&mut all, "n"), Ok(None));
        assert_eq!(all, [url("http://a/?x=1"), url("b c")]);
        assert!(take(&mut query(), "url").is_err());
        assert!(parameters(None).is_empty() && parameters(Some("")).is_empty());
    }
}

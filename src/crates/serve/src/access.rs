//! Access control: with a token, whoever sends it; without one, everybody on this machine.
//!
//! Without a token, a request must name its host by an address or as `localhost`. Otherwise a web site could point its
//! own name at this machine (DNS rebinding) and have a browser read the answers for it.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{Request, StatusCode, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const TOKEN_MIN: usize = 16;
const TOKEN_MAX: usize = 4096;

/// Secret that clients send: `Authorization: Bearer TOKEN` or, from browsers, as the password of any user.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Parses a token; surrounding white space is ignored. Fails if the token is too short or too long, or has
    /// characters other than printable ASCII.
    pub fn new(text: &str) -> Result<Token, String> {
        let text = text.trim();
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token consists of printable ASCII characters, without spaces".into());
        }
        if !(TOKEN_MIN..=TOKEN_MAX).contains(&text.len()) {
            return Err(format!(
                "a token of {} characters: it must have {TOKEN_MIN} to {TOKEN_MAX}",
                text.len()
            ));
        }
        Ok(Token(text.into()))
    }

    /// Compares in constant time, which does not reveal where the difference is.
    fn is(&self, other: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let differences = own.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
        own.len() == other.len() && differences == 0
    }

    fn is_in(&self, authorization: &str) -> bool {
        let Some((scheme, rest)) = authorization.split_once(' ') else {
            return false;
        };
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return self.is(rest.as_bytes());
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return false;
        }
        let decoded = STANDARD.decode(rest).unwrap_or_default();
        let colon = decoded.iter().position(|&byte| byte == b':');
        colon.is_some_and(|at| self.is(&decoded[at + 1..]))
    }
}

/// Returns whether only this machine can reach the address.
pub fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Checks whether a request may be answered. The error is the status to refuse it with, and the reason.
pub(crate) fn check<B>(
    token: Option<&Token>,
    request: &Request<B>,
) -> Result<(), (StatusCode, &'static str)> {
    if let Some(token) = token {
        let sent = request.headers().get(AUTHORIZATION);
        return match sent.and_then(|sent| sent.to_str().ok()) {
            Some(sent) if token.is_in(sent) => Ok(()),
            _ => Err((
                StatusCode::UNAUTHORIZED,
                "the token is required: `Authorization: Bearer TOKEN`",
            )),
        };
    }
    let authority = request.uri().authority();
    let mut headers = request.headers().get_all(HOST).iter();
    let header = headers.next();
    let none = header.is_none() && authority.is_none() && request.version() == Version::HTTP_11;
    if none || headers.next().is_some() {
        return Err((
            StatusCode::BAD_REQUEST,
            "an HTTP/1.1 request must name one host",
        ));
    }
    let header = header.map(|host| host.to_str().unwrap_or_default());
    let authority = authority.map(|authority| authority.as_str());
    let mut named = authority.into_iter().chain(header);
    if named.all(is_own_name) {
        Ok(())
    } else {
        Err((
            StatusCode::MISDIRECTED_REQUEST,
            "without a token, requests must name the service by its address or as `localhost`",
        ))
    }
}

/// Returns whether `host`, with or without a port, is an address or `localhost`.
fn is_own_name(host: &str) -> bool {
    if host.parse::<IpAddr>().is_ok() || host.parse::<SocketAddr>().is_ok() {
        return true;
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost") || bare.unwrap_or(name).parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn asked(header: Option<(&str, &str)>) -> Request<()> {
        let mut request = Request::builder().uri("/status");
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn a_token_is_needed_whole() {
        let token = Token::new(&format!(" {SECRET}\n")).unwrap();
        let with = |text: &str| check(Some(&token), &asked(Some(("authorization", text)))).is_ok();
        assert!(with(&format!("Bearer {SECRET}")));
        assert!(with(&format!("bearer {SECRET}")));
        // `printf 'me:0123456789abcdef' | base64`
        assert!(with("Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg=="));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdeg",
            "Bearer 0123456789abcdef0",
            "Basic",
            "Basic !!!",
            "Basic MDEyMzQ1Njc4OWFiY2RlZg==",
            "Digest 0123456789abcdef",
        ] {
            assert!(!with(wrong), "{wrong:?}");
        }
        assert!(check(Some(&token), &asked(None)).is_err());
        assert!(Token::new("short").is_err());
        assert!(Token::new("0123456789 abcdef").is_err());
    }

    #[test]
    fn without_a_token_names_of_others_are_refused() {
        let named = |host: &str| check(None, &asked(Some(("host", host)))).is_ok();
        for own in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]:8080",
            "[::1]",
            "::1",
        ] {
            assert!(named(own), "{own:?}");
        }
        for other in [
            "",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
        ] {
            assert!(!named(other), "{other:?}");
        }
        // No token at all, or a header with ours before one with another.
        assert!(check(None, &asked(None)).is_err());
        let mut two = asked(Some(("host", "localhost")));
        two.headers_mut()
            .append(HOST, "evil.example".parse().unwrap());
        assert!(check(None, &two).is_err());
    }

    #[test]
    fn loopback_addresses() {
        let is = |text: &str| is_loopback(&text.parse().unwrap());
        assert!(
            is("127.0.0.1:1") && is("127.8.9.1:1") && is("[::1]:1") && is("[::ffff:127.0.0.1]:1")
        );
        assert!(
            !is("0.0.0.0:1") && !is("[::]:1") && !is("10.0.0.1:1") && !is("[::ffff:10.0.0.1]:1")
        );
    }
}

//! Explanations for requests that are not HTTP. The HTTP library refuses these with an answer without a body, before
//! any of our code sees a request; such an answer gets a body on its way out. Our own answers of these kinds already
//! have bodies.

/// Statuses of the library's bare answers, and the reasons that they stand for.
const REASONS: [(&str, &str); 3] = [
    ("400", "this is not an HTTP request"),
    ("414", "the address is too long"),
    ("431", "the header is larger than the service takes"),
];
const NO_BODY: &str = "content-length: 0\r\n";

/// Replacement for a bare answer.
#[derive(Debug)]
pub(crate) struct Explained {
    bytes: Vec<u8>,
    sent: usize,
}

impl Explained {
    /// Returns the replacement for these bytes, if they are exactly one bare answer.
    pub(crate) fn of(answer: &[u8]) -> Option<Explained> {
        let head = std::str::from_utf8(answer).ok()?;
        let status = head
            .strip_prefix("HTTP/1.1 ")
            .or(head.strip_prefix("HTTP/1.0 "))?;
        let (_, why) = REASONS.iter().find(|(code, _)| status.starts_with(code))?;
        let (before, after) = head.split_once(NO_BODY)?;
        // An empty line, after whatever other headers there are, must end both the head and the whole answer.
        let end = after.find("\r\n\r\n").map(|at| at + 4);
        let ends = after == "\r\n" || end == Some(after.len());
        if !ends {
            return None;
        }
        let body = serde_json::json!({ "error": why }).to_string() + "\n";
        let length = body.len();
        let described = format!("content-type: application/json\r\ncontent-length: {length}\r\n");
        Some(Explained {
            bytes: format!("{before}{described}{after}{body}").into(),
            sent: 0,
        })
    }

    /// Returns the bytes that are not sent yet.
    pub(crate) fn left(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Notes that `bytes` more bytes were sent; returns whether all are.
    pub(crate) fn sent(&mut self, bytes: usize) -> bool {
        self.sent += bytes;
        self.left().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_without_a_body_are_completed() {
        let bare = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\ndate: now\r\n\r\n";
        let mut found = Explained::of(bare.as_bytes()).unwrap();
        let text = String::from_utf8(found.left().to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 400") && head.ends_with("date: now"),
            "{head}"
        );
        assert!(
            head.contains(&format!("content-length: {}\r\n", body.len())),
            "{head}"
        );
        assert_eq!(body, "{\"error\":\"this is not an HTTP request\"}\n");
        assert!(!found.sent(1));
        assert!(found.sent(text.len() - 1));
        for other in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 5\r\n\r\nabcde",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n",
            "",
        ] {
            assert!(Explained::of(other.as_bytes()).is_none(), "{other}");
        }
    }
}

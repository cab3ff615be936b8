//! Limits on the resources that clients may use.

use std::time::Duration;

/// Limits of a service. The guide's chapter on the service documents the defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceLimits {
    /// Number of connections at once; further ones wait.
    pub connections: usize,
    /// Time for a request's header to arrive. That of the first request counts from the opening of the connection; in
    /// HTTP/1, that of a later request counts from the last answer.
    pub header_time: Duration,
    /// Time for which a client may send nothing. An idle HTTP/2 client is pinged after half of this time, and must
    /// answer within another quarter.
    pub idle_time: Duration,
    /// Time for which a client may take nothing of an answer; then its connection ends.
    pub write_time: Duration,
    /// Time for computing an answer.
    pub answer_time: Duration,
    /// Maximum length of a request's header, all lines together, in bytes.
    pub header_bytes: usize,
    /// Maximum length of an answer, in bytes.
    pub answer_bytes: usize,
    /// Maximum memory for untaken answers of all clients together, in bytes; further requests get 503.
    pub held_bytes: usize,
    /// Number of answers that are computed at once.
    pub workers: usize,
    /// Number of requests that wait for a worker; further ones get 503.
    pub waiting: usize,
    /// Number of concurrent requests on an HTTP/2 connection.
    pub streams: u32,
    /// Maximum number of pages in a request for pages to crawl next.
    pub next_pages: usize,
}

impl Default for ServiceLimits {
    fn default() -> ServiceLimits {
        ServiceLimits {
            connections: 256,
            header_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(60),
            write_time: Duration::from_secs(20),
            answer_time: Duration::from_secs(30),
            header_bytes: 64 << 10,
            answer_bytes: 16 << 20,
            held_bytes: 128 << 20,
            workers: 2,
            waiting: 64,
            streams: 16,
            next_pages: 100_000,
        }
    }
}

//! What clients may take: every number that bounds them, in one place.

use std::time::Duration;

/// The limits of a service. The defaults are documented in the guide's chapter on the service.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceLimits {
    /// Connections at once; further ones wait to be taken.
    pub connections: usize,
    /// How long things may take.
    pub times: Timeouts,
    /// Bytes of a request's header, all lines together.
    pub header_bytes: usize,
    /// Bytes of an answer.
    pub answer_bytes: usize,
    /// Bytes of answers that wait to be taken, of all clients together; further requests get 503.
    pub held_bytes: usize,
    /// Requests a second, of all clients together, over a second.
    pub requests_per_second: u32,
    /// Answers being looked for at once.
    pub workers: usize,
    /// Requests waiting for these; further ones get 503.
    pub waiting: usize,
    /// Requests at once on a connection of HTTP/2.
    pub streams: u32,
    /// Pages that a request for what to crawl next may ask for.
    pub next_pages: usize,
}

/// How long a client, or an answer, may take.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeouts {
    /// From the opening of a connection until its first request has begun, and for each request's header to arrive.
    pub header: Duration,
    /// A connection may be without a byte from the client for this long. A client of HTTP/2 answers the pings that it
    /// gets in half that time.
    pub idle: Duration,
    /// A client may leave an answer for this long without taking any of it; then its connection ends.
    pub write: Duration,
    /// For an answer to be found.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            header: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            write: Duration::from_secs(20),
            answer: Duration::from_secs(30),
        }
    }
}

impl Default for ServiceLimits {
    fn default() -> ServiceLimits {
        ServiceLimits {
            connections: 256,
            times: Timeouts::default(),
            header_bytes: 64 << 10,
            answer_bytes: 16 << 20,
            held_bytes: 128 << 20,
            requests_per_second: 2_000,
            workers: 2,
            waiting: 64,
            streams: 16,
            next_pages: 100_000,
        }
    }
}

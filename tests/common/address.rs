//! Addresses of the loopback.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One that nobody listens on. Not of the range of which the system takes ports for who connects.
pub fn free_address() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let next = std::process::id() as usize * 97 + NEXT.fetch_add(1, Ordering::Relaxed);
        let address = format!("127.0.0.1:{}", 10_000 + next % 20_000);
        if TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
}

//! Loopback addresses for tests.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns an address that nobody listens on, outside the range from which the system takes ports for outgoing
/// connections.
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

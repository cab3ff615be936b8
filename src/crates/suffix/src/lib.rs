//! The registered domain of a host, by the public suffix list.
//!
//! A crate of its own for its build: the list is code, a branch for each of some ten thousand rules, and takes longer
//! to optimise than all other code of a crate. Built without optimisation, it takes 0.4 µs per host instead of 0.05.

/// Returns the registered domain of a host in lower case: its public suffix, with those that companies added
/// (`github.io`), and the label before it; for an unlisted suffix, the last two labels. `None` if the host is a public
/// suffix or a single label. A host that is an IP address is not recognised as one.
pub fn domain(host: &[u8]) -> Option<&[u8]> {
    psl::domain(host).map(|domain| domain.as_bytes())
}

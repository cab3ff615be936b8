//! The canonical form of a URL.

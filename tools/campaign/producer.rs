//! Producer that pipes a crawl into a spooled ingest, and forgets what was acknowledged.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cashrank_ingest::ingest::StandardInput;
use cashrank_store::store::SpoolOptions;

/// State of a producer during one run: nothing that it has forgotten may be requested.
pub struct Producer {
    stream: Arc<[u8]>,
    forgotten: Arc<AtomicU64>,
    asked_from: Arc<AtomicU64>,
}

impl Producer {
    /// Creates a producer that has forgotten the first bytes of the stream.
    pub fn new(stream: &Arc<[u8]>, forgotten: u64) -> Producer {
        Producer {
            stream: stream.clone(),
            forgotten: Arc::new(AtomicU64::new(forgotten)),
            asked_from: Arc::default(),
        }
    }

    /// Returns the number of bytes acknowledged so far.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::SeqCst)
    }

    /// Sets the position to begin at. Returns false if those bytes are forgotten.
    pub fn is_asked_from(&self, from: u64) -> bool {
        self.asked_from.store(from, Ordering::SeqCst);
        from >= self.forgotten()
    }

    /// Returns its pipe: small pieces, from the requested position on.
    pub fn stdin(&self) -> StandardInput {
        let (stream, from) = (self.stream.clone(), self.asked_from.clone());
        Arc::new(move || {
            let at = from.load(Ordering::SeqCst) as usize;
            Box::new(Pieces {
                stream: stream.clone(),
                at,
            })
        })
    }

    /// Returns the options of the spool: without a clock, in small segments.
    pub fn spool(&self) -> SpoolOptions {
        let forgotten = self.forgotten.clone();
        SpoolOptions {
            sync_every: None,
            sync_bytes: 1000,
            segment_bytes: 3000,
            on_durable: Some(Arc::new(move |acked| {
                forgotten.fetch_max(acked, Ordering::SeqCst);
                Ok(())
            })),
        }
    }
}

struct Pieces {
    stream: Arc<[u8]>,
    at: usize,
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.stream.get(self.at..).unwrap_or_default();
        let len = out.len().min(701);
        let read = rest.read(&mut out[..len])?;
        self.at += read;
        Ok(read)
    }
}

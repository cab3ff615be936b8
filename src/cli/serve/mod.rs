//! `cashrank serve`, and the service that runs during an ingest (`ingest --listen`).

mod backend;
mod cache;
mod current;
mod status;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cashrank::{Error, NextOptions};
use cashrank_base::model::require_feature;
#[cfg(feature = "frontier")]
use cashrank_frontier::{FrontierLimits, FrontierOptions};
use cashrank_serve::{Calls, Service, ServiceLimits, ServiceOptions, Token};
use cashrank_store::store::{RealDisk, settings_of};
use clap::builder::{PathBufValueParser, TypedValueParser};

use super::common::{Exit, StoreArg, say, stop_on_signal};
use backend::{StoreBackend, as_parameters};
pub use status::LiveIngest;

/// Number of bytes read of a token's file: more than any token has.
const TOKEN_BYTES: u64 = 1 << 13;
const LOOK_EVERY: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  cashrank serve --store ranks
  curl 'http://127.0.0.1:8642/top?n=10'
  curl 'http://127.0.0.1:8642/next?n=100&per-host=2'
  cashrank serve --store ranks --listen 0.0.0.0:8642 --token-file secret
  cashrank serve --store ranks --listen 127.0.0.1:7071 --frontier urls.frontier

The web page is at /. Answers come from the newest snapshot, even while another process ingests into the store. \
Requests change nothing. The guide (formats/guide/service.md) lists paths, parameters and limits.";

/// Answer questions about a store over HTTP, for programs and for people.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    #[command(flatten)]
    store: StoreArg,
    /// The address and port to listen on; port 0: any free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8642")]
    listen: SocketAddr,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(clap::Args)]
pub struct ServiceArgs {
    /// A file with a token that clients must send; required if other machines can reach the address.
    ///
    /// Of 16 characters or more.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Also hand out URLs to crawlers, over URLFrontier's gRPC interface at the same address, from FILE.
    ///
    /// FILE stores the URLs; created if it does not exist.
    #[cfg_attr(
        not(feature = "frontier"),
        doc = "\n\nThis build has none: cargo install --features frontier."
    )]
    #[arg(long, value_name = "FILE", value_parser = frontier_file())]
    frontier: Option<PathBuf>,
    /// With --frontier: how pages are ordered, by options of `next`, like strategy=greedy; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "frontier", value_parser = option)]
    frontier_next: Vec<(String, String)>,
    /// With --frontier: how many URLs FILE may hold; further ones are refused.
    #[arg(long, value_name = "N", requires = "frontier", value_parser = super::common::positive)]
    frontier_urls: Option<u64>,
}

/// Parses the frontier's file, for clap; a build without the frontier refuses it.
fn frontier_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| require_feature("frontier").map(|()| path))
}

fn option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?}: a name and a value, like strategy=greedy"))?;
    Ok((name.into(), value.into()))
}

impl ServiceArgs {
    fn token(&self) -> anyhow::Result<Option<Token>> {
        let Some(path) = &self.token_file else {
            return Ok(None);
        };
        let mut text = Vec::new();
        let file = File::open(path).map(|file| file.take(TOKEN_BYTES + 1));
        let read = file.and_then(|mut file| file.read_to_end(&mut text));
        anyhow::ensure!(
            read.map_err(Error::io(path, "read"))? as u64 <= TOKEN_BYTES,
            "{}: holds more than {TOKEN_BYTES} bytes, so it is no token",
            path.display()
        );
        let token = Token::new(&String::from_utf8_lossy(&text));
        let token = token.map_err(|why| anyhow::anyhow!("{}: {why}", path.display()));
        token.map(Some)
    }

    pub fn is_given(&self) -> bool {
        self.token_file.is_some() || self.frontier.is_some()
    }

    #[cfg(feature = "frontier")]
    fn frontier(&self) -> Option<Box<dyn Calls>> {
        let mut limits = FrontierLimits::default();
        limits.urls = self.frontier_urls.unwrap_or(limits.urls);
        Some(Box::new(FrontierOptions {
            path: self.frontier.clone()?,
            next: self.frontier_next.clone(),
            limits,
        }))
    }

    #[cfg(not(feature = "frontier"))]
    fn frontier(&self) -> Option<Box<dyn Calls>> {
        let _ = &self.frontier_urls;
        None
    }
}

impl ServeArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let store = self.store.store;
        anyhow::ensure!(
            settings_of(&RealDisk, &store)?.is_some(),
            "{}: not a cashrank store; `cashrank ingest` creates one",
            store.display()
        );
        let stop = stop_on_signal()?;
        let service = start(&store, self.listen, &self.service, None)?;
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_EVERY);
        }
        drop(service);
        Ok(Exit::Done)
    }
}

pub fn start(
    store: &Path,
    listen: SocketAddr,
    args: &ServiceArgs,
    live: Option<Arc<LiveIngest>>,
) -> anyhow::Result<Service> {
    let token = args.token()?;
    anyhow::ensure!(
        token.is_some() || cashrank_serve::is_loopback(&listen),
        "{listen}: other machines can reach this address: give a token (--token-file), or listen at 127.0.0.1"
    );
    if args.frontier.is_some() {
        NextOptions::of(&args.frontier_next)
            .map_err(|why| anyhow::anyhow!("--frontier-next: {}", as_parameters(&why)))?;
    }
    let options = ServiceOptions {
        listen,
        token,
        limits: ServiceLimits::default(),
        calls: args.frontier(),
    };
    let service = StoreBackend::new(store.into(), live)
        .and_then(|backend| Service::start(options, Arc::new(backend)));
    let service = service.map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => anyhow::anyhow!(error.to_string()),
        ErrorKind::WouldBlock => Error::io("thread", "start")(error).into(),
        _ => anyhow::anyhow!("cannot serve at {listen}: {error}"),
    })?;
    say!("serving at http://{}/", service.address());
    Ok(service)
}

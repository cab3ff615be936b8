//! The real binary, driven from outside as a user would: exit codes, messages, files.

use cashrank_base::folder;

#[path = "cli/bad_input.rs"]
mod bad_input;
#[path = "cli/built.rs"]
mod built;
#[path = "cli/commands.rs"]
mod commands;
#[path = "cli/compute.rs"]
mod compute;
#[path = "cli/convert.rs"]
mod convert;
#[path = "cli/coverage.rs"]
mod coverage;
#[path = "common/crawl.rs"]
mod crawl;
#[path = "cli/crawl_log.rs"]
mod crawl_log;
#[path = "cli/daily.rs"]
mod daily;
#[path = "cli/deaf.rs"]
mod deaf;
#[path = "cli/determinism.rs"]
mod determinism;
#[path = "cli/dump.rs"]
mod dump;
#[path = "cli/exits.rs"]
mod exits;
#[path = "cli/expire.rs"]
mod expire;
#[path = "cli/few_threads.rs"]
mod few_threads;
#[path = "cli/fields.rs"]
mod fields;
#[path = "cli/first_hour.rs"]
mod first_hour;
#[path = "cli/gone.rs"]
mod gone;
#[path = "cli/graph.rs"]
mod graph;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/history.rs"]
mod history;
#[path = "cli/hostile.rs"]
mod hostile;
#[path = "cli/index.rs"]
mod index;
#[path = "cli/inspect.rs"]
mod inspect;
#[path = "cli/lists.rs"]
mod lists;
#[path = "cli/local.rs"]
mod local;
#[path = "cli/lookup.rs"]
mod lookup;
#[path = "cli/memory.rs"]
mod memory;
#[path = "cli/mounts.rs"]
mod mounts;
#[path = "cli/moved.rs"]
mod moved;
#[path = "cli/next.rs"]
mod next;
#[path = "cli/next_orders.rs"]
mod next_orders;
#[path = "cli/output.rs"]
mod output;
#[path = "common/pack.rs"]
mod pack;
#[cfg(feature = "serve")]
#[path = "cli/page.rs"]
mod page;
#[path = "cli/plain.rs"]
mod plain;
#[path = "cli/plan.rs"]
mod plan;
#[path = "common/python.rs"]
mod python;
#[path = "cli/read_shards.rs"]
mod read_shards;
#[path = "cli/real.rs"]
mod real;
#[path = "cli/record.rs"]
mod record;
#[path = "cli/resume.rs"]
mod resume;
#[path = "cli/rot.rs"]
mod rot;
#[path = "cli/rules.rs"]
mod rules;
#[cfg(feature = "serve")]
#[path = "cli/serve.rs"]
mod serve;
#[cfg(feature = "frontier")] // It has HTTP/2, too.
#[path = "cli/serve_hostile.rs"]
mod serve_hostile;
#[cfg(feature = "serve")]
#[path = "cli/serve_views.rs"]
mod serve_views;
#[path = "cli/settle.rs"]
mod settle;
#[path = "cli/shards.rs"]
mod shards;
#[path = "cli/since.rs"]
mod since;
#[path = "cli/spool.rs"]
mod spool;
#[path = "cli/store.rs"]
mod store;
#[path = "cli/support.rs"]
mod support;
#[cfg(feature = "parquet")]
#[path = "common/table.rs"]
mod table;
#[cfg(feature = "parquet")]
#[path = "cli/table.rs"]
mod tables;
#[path = "cli/takers.rs"]
mod takers;
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/times.rs"]
mod times;
#[path = "cli/unused.rs"]
mod unused;
#[path = "cli/warc.rs"]
mod warc;
#[path = "cli/warm.rs"]
mod warm;
#[path = "cli/weights.rs"]
mod weights;
#[path = "cli/windows.rs"]
mod windows;

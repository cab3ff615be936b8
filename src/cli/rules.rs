//! The options that say what is taken from inputs, for every command that reads crawl records.

use cashrank::rules::{DropParams, FieldChoice, Fields, InputRules, Outlinks, Scope};

use super::common::{one_of, parsed};

/// What is taken from inputs.
#[derive(clap::Args)]
#[command(next_help_heading = "What is taken from inputs")]
pub struct RulesArgs {
    /// Where the links of a page in a WARC come from: html, or metadata, the `outlink` lines of the
    /// crawler's metadata records [default: html].
    #[arg(long, value_name = "WHENCE", value_parser = one_of(["html", "metadata"], parsed::<Outlinks>))]
    outlinks: Option<Outlinks>,
    /// What JSON lines call a field of ours: url=response_url. Of a record: url, links, fetched_at, status, redirect;
    /// of a link that is an object: link.url, link.rel, link.nofollow. Several times, or with commas.
    #[arg(long = "field", value_name = "FIELD=NAME", value_delimiter = ',', value_parser = parsed::<FieldChoice>)]
    fields: Vec<FieldChoice>,
    /// Take these parameters out of URLs: names with commas between, * at the end of a name for all that
    /// begin so; `tracking` and `session` stand for lists of usual ones [default: none].
    #[arg(long, value_name = "NAMES", value_parser = parsed::<DropParams>)]
    drop_params: Vec<DropParams>,
    /// Only these pages count: host:NAME, domain:NAME or url:PATTERN, where * is anything; `!` before it:
    /// not these. May be given several times [default: all].
    #[arg(long, value_name = "PAGES", value_parser = parsed::<Scope>)]
    scope: Vec<Scope>,
}

impl RulesArgs {
    /// The rules given; those not given are the store's.
    pub fn resolve(&self, store: Option<&InputRules>) -> anyhow::Result<InputRules> {
        let mut rules = store.cloned().unwrap_or_default();
        rules.outlinks = self.outlinks.unwrap_or(rules.outlinks);
        if !self.fields.is_empty() {
            rules.fields = Fields::of(self.fields.clone())?;
        }
        if !self.drop_params.is_empty() {
            rules.drop_params = DropParams::default();
            let given = self.drop_params.iter().cloned();
            given.for_each(|names| rules.drop_params.add(names));
        }
        if !self.scope.is_empty() {
            rules.scope = Scope::default();
            self.scope
                .iter()
                .cloned()
                .for_each(|pages| rules.scope.add(pages));
        }
        Ok(rules)
    }
}

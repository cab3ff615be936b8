//! The options that say what is taken from inputs, for every command that reads crawl records.

use cashrank::rules::{DropParams, FieldChoice, Fields, InputRules, Outlinks, Scope};

use super::common::{one_of, parsed};

/// Rules for what is read from inputs.
#[derive(clap::Args)]
#[command(next_help_heading = "What to read")]
pub struct RulesArgs {
    /// Where to take the links of a WARC's pages from: their HTML, or the `outlink` lines of the crawler's metadata
    /// records [default: html].
    #[arg(long, value_name = "WHENCE", value_parser = one_of(["html", "metadata"], parsed::<Outlinks>))]
    outlinks: Option<Outlinks>,
    /// The name of a field in JSON lines, like url=response_url. Fields of a record: url, links, fetched_at, status,
    /// redirect, digest, requested_url, final_url, base, method, links_nofollow, links_rel, links_weight, revisit; of a link that is an object:
    /// link.url, link.rel, link.nofollow. Repeat the option, or separate several by commas.
    #[arg(long = "field", value_name = "FIELD=NAME", value_delimiter = ',', value_parser = parsed::<FieldChoice>)]
    fields: Vec<FieldChoice>,
    /// Remove these parameters from URLs. Separate names by commas; a `*` at the end of a name stands for any ending;
    /// `tracking` and `session` stand for lists of common names [default: none].
    #[arg(long, value_name = "NAMES", value_parser = parsed::<DropParams>)]
    drop_params: Vec<DropParams>,
    /// Count only these pages: host:NAME, barehost:NAME, domain:NAME, prefix:HOST/FOLDERS or url:PATTERN, where * matches anything. With `!` in front: all
    /// but these. May be repeated [default: all].
    #[arg(long, value_name = "PAGES", value_parser = parsed::<Scope>)]
    scope: Vec<Scope>,
}

impl RulesArgs {
    /// The first of these options that is given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (self.outlinks.is_some(), "--outlinks"),
            (!self.fields.is_empty(), "--field"),
            (!self.drop_params.is_empty(), "--drop-params"),
            (!self.scope.is_empty(), "--scope"),
        ];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }

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

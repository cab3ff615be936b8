//! Scores as fields of a search engine's documents, which are identified by the URL: JSON lines.
//!
//! | format | lines of a page | source |
//! |---|---|---|
//! | `elasticsearch` | `{"update":{"_id":URL}}` `{"doc":{FIELD:score}}` | the bulk interface of Elasticsearch and OpenSearch |
//! | `elasticsearch-index` | `{"index":{"_id":URL}}` `{"url":URL,"host":...,"domain":...,"rank":...,FIELD:score}` | the same |
//! | `vespa` | `{"update":"id:NAMESPACE:TYPE::URL","fields":{FIELD:{"assign":score}}}` | Vespa's document JSON format |
//!
//! An `_id` has 1 to 512 bytes: Elasticsearch rejects others, so these pages are left out, and counted. Its
//! `rank_feature` accepts only positive normal 32-bit numbers, so scores are rounded to these. Updates change existing
//! documents and create none. A page that was found gone since an older ranking is `{"delete":{"_id":URL}}` in
//! `elasticsearch-index`, whose documents belong to the ranking; the other two only change a field of existing
//! documents, and delete none.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::host::{domain_of, host_of};
use super::score::Scorer;
use super::{
    Content, ExportFormatSpec, ExportOutput, Exporter, LineWriter, Page, Scoring, Setup, put_json,
};
use crate::model::Change;
use crate::sites::Level;
use crate::{Error, Result};

pub(super) const ELASTICSEARCH: ExportFormatSpec = ExportFormatSpec {
    name: "elasticsearch",
    about: "bulk updates of one field, for Elasticsearch and OpenSearch",
    is_text: true,
    content: Content::Field,
    start: |out, setup| Documents::boxed(out, setup, DocumentKind::Update),
};

pub(super) const ELASTICSEARCH_INDEX: ExportFormatSpec = ExportFormatSpec {
    name: "elasticsearch-index",
    about: "bulk documents of their own: url, host, domain, score, rank",
    is_text: true,
    content: Content::Field,
    start: |out, setup| Documents::boxed(out, setup, DocumentKind::Index),
};

pub(super) const VESPA: ExportFormatSpec = ExportFormatSpec {
    name: "vespa",
    about: "partial updates of one field, for Vespa",
    is_text: true,
    content: Content::Field,
    start: |out, setup| Documents::boxed(out, setup, DocumentKind::Vespa),
};

/// Maximum length of Elasticsearch's `_id`, in bytes.
const ID_BYTES: usize = 512;

/// Fields of documents other than the score's.
const OTHER_FIELDS: [&str; 4] = ["url", "host", "domain", "rank"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum DocumentKind {
    Update,
    Index,
    Vespa,
}

struct Documents<'w> {
    lines: LineWriter<'w>,
    scorer: Scorer,
    kind: DocumentKind,
    field: String,
    into: Option<String>,
    /// Rows are of no domain, which has several.
    has_host: bool,
    left_out: u64,
}

impl<'w> Documents<'w> {
    fn boxed(
        out: ExportOutput<'w>,
        setup: &Setup,
        kind: DocumentKind,
    ) -> Result<Box<dyn Exporter + 'w>> {
        let Scoring { field, into, .. } = setup.scoring.clone();
        if kind == DocumentKind::Index && OTHER_FIELDS.contains(&field.as_str()) {
            return Err(Error::Usage(format!(
                "field {field:?}: it holds something else; choose another for the score"
            )));
        }
        if kind == DocumentKind::Vespa {
            document_type(into.as_deref())?;
        }
        Ok(Box::new(Documents {
            lines: LineWriter::new(out),
            scorer: Scorer::new(setup),
            kind,
            field,
            into,
            has_host: setup.columns.level != Level::Domain,
            left_out: 0,
        }))
    }

    fn line(&mut self, of: &impl Serialize) -> Result<()> {
        put_json(&mut self.lines.buffer, &self.lines.out.path, of)?;
        self.lines.buffer.push(b'\n');
        Ok(())
    }
}

/// JSON object with one member.
struct JsonMember<'a, T>(&'a str, T);

impl<T: Serialize> Serialize for JsonMember<'_, T> {
    fn serialize<S: Serializer>(&self, into: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = into.serialize_map(Some(1))?;
        map.serialize_entry(self.0, &self.1)?;
        map.end()
    }
}

#[derive(Serialize)]
struct DocumentId<'a> {
    #[serde(rename = "_index", skip_serializing_if = "Option::is_none")]
    index: Option<&'a str>,
    #[serde(rename = "_id")]
    id: &'a str,
}

#[derive(Serialize)]
struct Document<'a> {
    url: &'a str,
    host: Option<&'a str>,
    domain: Option<&'a str>,
    rank: u64,
    #[serde(flatten)]
    score: JsonMember<'a, f32>,
}

#[derive(Serialize)]
struct Update<'a> {
    update: &'a str,
    fields: JsonMember<'a, JsonMember<'a, f32>>,
}

/// Checks Vespa's `NAMESPACE:TYPE`, which has no default.
fn document_type(into: Option<&str>) -> Result<()> {
    let parts = into.and_then(|into| into.split_once(':'));
    match parts {
        Some((space, kind)) if !space.is_empty() && !kind.is_empty() && !kind.contains(':') => {
            Ok(())
        }
        _ => Err(Error::Usage(
            "Vespa's documents are identified by namespace and type: `into` NAMESPACE:TYPE, like web:page".into(),
        )),
    }
}

impl Exporter for Documents<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        let score = self.scorer.positive(page)?;
        let (url, field, into) = (&*page.url, self.field.clone(), self.into.clone());
        let (score, index) = (JsonMember(&field, score), into.as_deref());
        if self.kind == DocumentKind::Vespa {
            let update = format!("id:{}::{url}", index.unwrap_or_default());
            let fields = JsonMember(score.0, JsonMember("assign", score.1));
            self.line(&Update {
                update: &update,
                fields,
            })?;
            return self.lines.line_done();
        }
        if url.is_empty() || url.len() > ID_BYTES {
            self.left_out += 1;
            return Ok(());
        }
        let target = DocumentId { index, id: url };
        if self.kind == DocumentKind::Update {
            self.line(&JsonMember("update", target))?;
            self.line(&JsonMember("doc", score))?;
        } else if page.change == Some(Change::Gone) {
            self.line(&JsonMember("delete", target))?;
        } else {
            self.line(&JsonMember("index", target))?;
            self.line(&Document {
                url,
                host: host_of(page).filter(|_| self.has_host),
                domain: domain_of(page),
                rank: page.rank,
                score,
            })?;
        }
        self.lines.line_done()
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        let left_out = self.left_out;
        self.lines.finish().map(|()| left_out)
    }
}

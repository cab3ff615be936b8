//! `cashrank export --records`: the contents of a store as crawl records.

use cashrank_ingest::records::{Dumped, RecordFile, RecordFormat, SortRoom, dump, names_of};

use super::super::common::{Exit, counted, pages as counted_pages};
use super::super::output::{Keep, OutputTarget};
use super::{ExportArgs, scratch};

impl ExportArgs {
    pub(super) fn export_records(&self, output: &OutputTarget) -> anyhow::Result<Exit> {
        let path = self.output.file.name();
        let format = RecordFormat::of_name(path)?;
        output.must_show("a packed file", format.is_text())?;
        let work = || "a dump of a store".to_owned();
        let instead = "dump it on a machine with more memory";
        let memory = self.memory.to_sort(0, work, instead)?;
        let snapshot = self.snapshot.open(self.stores.first())?;
        let names = names_of(&snapshot)?;
        let folder = scratch(output);
        let room = SortRoom { memory, folder };
        let dumped = output.write(|out| {
            let mut file = RecordFile::new(format, names, Box::new(out), path)?;
            let dumped = dump(&snapshot, names, &mut file, &room)?;
            file.finish()?;
            Ok((dumped, Keep::Durably))
        })?;
        let Dumped { pages, links } = dumped;
        let summary = serde_json::json!({
            "pages": pages,
            "links": links,
            "snapshot": snapshot.path().display().to_string(),
        });
        let links = counted(links, "link", "links");
        let said = format!("{}, {links}", counted_pages(pages));
        self.output.report(output, &said, summary)
    }
}

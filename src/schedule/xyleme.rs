//! Xyleme's balance of discovery and refresh (OPIC, section 3.3): as Greedy, but the virtual page receives
//! what is not handed on over links and pays the share `discovery` of it equally to all pages not read yet,
//! the rest to pages already read. A page that waits long gathers cash until it is read.

use super::greedy::parts;
use super::queue::Queue;
use super::{Ask, Crawl, Registered, Scored, Strategy};
use crate::Result;
use crate::rows::Row;

pub(super) const REGISTERED: Registered = Registered {
    name: "xyleme",
    about: "most cash first, the virtual page paying pages not read yet",
    parameters: &["damping", "discovery"],
    page_by_page: true,
    without_rows: false,
    needs_names: false,
    make: |parameters| {
        Box::new(Xyleme {
            damping: parameters.damping,
            discovery: parameters.discovery,
            paid: 0.0,
            queue: Queue::default(),
        })
    },
};

struct Xyleme {
    damping: f64,
    discovery: f64,
    /// What every page not read has received from the virtual page since the start.
    paid: f64,
    /// Scores are cash less `paid`: payments to all alike don't change their order.
    queue: Queue,
}

impl Strategy for Xyleme {
    fn found(&mut self, _crawl: &Crawl, page: u32, by: Option<u32>) {
        let cash = if by.is_none() { 1.0 } else { 0.0 };
        self.queue.put(page, cash - self.paid);
    }

    fn read(&mut self, crawl: &Crawl, row: Row<'_>) {
        let cash = self.paid + self.queue.score(row.page).unwrap_or(-self.paid);
        let mut handed = 0.0;
        for (target, part) in parts(row) {
            let cash = self.damping * cash * part;
            handed += cash;
            if !crawl.is_read(target) {
                let had = self.queue.score(target).unwrap_or(-self.paid);
                self.queue.put(target, had + cash);
            }
        }
        let not_read = crawl.pages() - crawl.read();
        if not_read > 0 {
            self.paid += self.discovery * (cash - handed) / f64::from(not_read);
        }
    }

    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        let mut best = self.queue.best(ask.crawl, ask.count);
        best.iter_mut().for_each(|scored| scored.score += self.paid);
        Ok(best)
    }
}

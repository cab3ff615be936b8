//! URLs as the frontier's file keeps them.
//!
//! A URL's key is `canonical \0 crawl \0 queue \0 sent`, so that all entries of a page stand together whatever queue
//! they are in; `sent` is empty where the URL was sent in its canonical form. Its value is, in little endian:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version of the layout: 1 |
//! | 1 | where it stands: 0 ready, 1 waiting for its date, 2 handed out, 3 completed |
//! | 1 | 1: it was fetched before |
//! | 8 | its number: URLs are numbered as they come |
//! | 8 | when it came, in seconds since 1970 |
//! | 8 | until when it waits, or is handed out, in seconds since 1970; 0: not at all |
//! | 24 | its place in the order of its queue |
//! | rest | metadata, as a `URLInfo` of the interface |
//!
//! The order of a queue: the pages of the strategy's newest list come first, by their scores; then those of older
//! lists, newest first; then all others, as they came.

use cashrank_serve::{Problem, Result};

const VERSION: u8 = 1;
const HEAD: usize = 3 + 3 * 8 + Order::LEN;

/// State of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlState {
    /// May be handed out.
    Ready,
    /// May be handed out from a date on.
    Waiting,
    /// Handed out; may be handed out again after a date if no result arrives.
    Leased,
    /// Not to be fetched again.
    Completed,
}

/// Position in the order of a queue: smaller is earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order(pub(crate) [u8; Order::LEN]);

impl Order {
    pub(crate) const LEN: usize = 24;

    /// Returns the position of URL `number` with a score in list `list`.
    pub(crate) fn scored(list: u64, score: f64, number: u64) -> Order {
        // The bits of non-negative floats are in the order of the values. Scores below 0 or NaN count as 0.
        let bits = if score > 0.0 { score.to_bits() } else { 0 };
        Order::of(!list, !bits, number)
    }

    /// Returns the position of a URL without a score.
    pub(crate) fn unscored(number: u64) -> Order {
        Order::of(u64::MAX, u64::MAX, number)
    }

    /// Returns the position with its score multiplied by `factor`, if it has one.
    pub(crate) fn times(self, factor: f64) -> Order {
        let part = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&self.0[at..at + 8]);
            u64::from_be_bytes(eight)
        };
        let (list, bits, number) = (part(0), part(8), part(16));
        match list {
            u64::MAX => self,
            list => Order::scored(!list, factor * f64::from_bits(!bits), number),
        }
    }

    fn of(list: u64, score: u64, number: u64) -> Order {
        let mut bytes = [0; Order::LEN];
        for (part, value) in bytes.chunks_exact_mut(8).zip([list, score, number]) {
            part.copy_from_slice(&value.to_be_bytes());
        }
        Order(bytes)
    }
}

/// URL as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) place: UrlState,
    pub(crate) fetched: bool,
    pub(crate) number: u64,
    pub(crate) created: u64,
    pub(crate) date: u64,
    pub(crate) order: Order,
    pub(crate) metadata: Vec<u8>,
}

impl Item {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + self.metadata.len());
        let place = match self.place {
            UrlState::Ready => 0,
            UrlState::Waiting => 1,
            UrlState::Leased => 2,
            UrlState::Completed => 3,
        };
        out.extend([VERSION, place, u8::from(self.fetched)]);
        for number in [self.number, self.created, self.date] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.order.0);
        out.extend(&self.metadata);
        out
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Item> {
        let damaged =
            || Problem::Failed("the frontier's file is damaged: an entry makes no sense".into());
        let (head, metadata) = bytes.split_at_checked(HEAD).ok_or_else(damaged)?;
        let number = |at: usize| -> u64 {
            let mut eight = [0; 8];
            eight.copy_from_slice(&head[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        let mut order = [0; Order::LEN];
        order.copy_from_slice(&head[27..]);
        Ok(Item {
            place: match (head[0], head[1]) {
                (VERSION, 0) => UrlState::Ready,
                (VERSION, 1) => UrlState::Waiting,
                (VERSION, 2) => UrlState::Leased,
                (VERSION, 3) => UrlState::Completed,
                _ => return Err(damaged()),
            },
            fetched: head[2] == 1,
            number: number(3),
            created: number(11),
            date: number(19),
            order: Order(order),
            metadata: metadata.to_vec(),
        })
    }
}

/// Parts of a URL's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    pub(crate) canonical: &'a str,
    pub(crate) crawl: &'a str,
    pub(crate) queue: &'a str,
    pub(crate) sent: &'a str,
}

impl<'a> Key<'a> {
    /// Builds the key of a URL as it was sent; no part contains a zero byte.
    pub(crate) fn new(
        canonical: &'a str,
        crawl: &'a str,
        queue: &'a str,
        sent: &'a str,
    ) -> Key<'a> {
        let sent = if sent == canonical { "" } else { sent };
        Key {
            canonical,
            crawl,
            queue,
            sent,
        }
    }

    pub(crate) fn text(&self) -> String {
        [self.canonical, self.crawl, self.queue, self.sent].join("\0")
    }

    pub(crate) fn parse(text: &'a str) -> Result<Key<'a>> {
        let mut parts = text.split('\0');
        match (
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
        ) {
            (Some(canonical), Some(crawl), Some(queue), Some(sent), None) => Ok(Key {
                canonical,
                crawl,
                queue,
                sent,
            }),
            _ => Err(Problem::Failed(
                "the frontier's file is damaged: a key makes no sense".into(),
            )),
        }
    }

    /// Returns the URL as it was sent.
    pub(crate) fn url(&self) -> &'a str {
        if self.sent.is_empty() {
            self.canonical
        } else {
            self.sent
        }
    }

    /// Returns the name of its queue, including the crawl.
    pub(crate) fn queue_name(&self) -> String {
        queue_name(self.crawl, self.queue)
    }
}

/// Returns a queue's name, including the crawl.
pub(crate) fn queue_name(crawl: &str, queue: &str) -> String {
    format!("{crawl}\0{queue}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_read_as_it_was_written() {
        for place in [
            UrlState::Ready,
            UrlState::Waiting,
            UrlState::Leased,
            UrlState::Completed,
        ] {
            let item = Item {
                place,
                fetched: place == UrlState::Completed,
                number: 7,
                created: u64::MAX,
                date: 1 << 40,
                order: Order::scored(3, 0.5, 7),
                metadata: b"more".to_vec(),
            };
            assert_eq!(Item::parse(&item.bytes()), Ok(item));
        }
        for bad in [&[][..], &[1; HEAD - 1], &[2; HEAD], &[1, 4].repeat(HEAD)] {
            assert!(Item::parse(bad).is_err());
        }
        let key = Key::new("http://a/", "crawl", "a", "http://A/");
        assert_eq!(Key::parse(&key.text()), Ok(key));
        assert_eq!(
            (key.url(), Key::new("x", "c", "q", "x").url()),
            ("http://A/", "x")
        );
        assert!(Key::parse("a\0b\0c").is_err() && Key::parse("a\0b\0c\0d\0e").is_err());
    }

    #[test]
    fn the_order_is_newest_list_then_score_then_arrival() {
        let right = [
            Order::scored(2, 0.25, 9),
            Order::scored(2, 0.125, 1),
            Order::scored(2, 0.125, 2),
            Order::scored(2, 0.0, 0),
            Order::scored(1, 0.9, 0),
            Order::scored(1, -1.0, 0),
            Order::unscored(3),
            Order::unscored(4),
        ];
        assert!(right.is_sorted_by(|a, b| a < b));
        assert_eq!(Order::scored(1, f64::NAN, 0), Order::scored(1, 0.0, 0));
    }
}

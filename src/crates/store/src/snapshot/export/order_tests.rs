use super::*;

fn sorted(order: Order, pages: &[(&'static str, u64)]) -> Vec<(String, u64)> {
    let rows = pages.iter().enumerate().map(|(at, &(url, rank))| {
        Ok(Page {
            page: PageId(at as u64),
            rank,
            importance: 0.5,
            visits: 7,
            last_fetch: (at == 0).then_some(-5),
            failed: None,
            state: PageState::ALL.get(at).copied(),
            url: url.into(),
            cash: (at == 0).then_some(0.75),
            distributed: (at == 0).then_some(0.5),
            more: [vec![Some(0.25), None], vec![]][at.min(1)].clone(),
            change: Change::ALL.get(at).copied(),
            site: (at == 0).then(|| SiteFacts {
                pages: 9,
                ..SiteFacts::default()
            }),
        })
    });
    let dir = tempfile::tempdir().unwrap();
    let sorted = ordered(rows, order, 0, dir.path()).unwrap();
    let sorted = sorted.map(|row| row.unwrap()).inspect(|row| {
        let first = row.page == PageId(0);
        assert_eq!(row.last_fetch, first.then_some(-5));
        assert_eq!(row.cash, first.then_some(0.75));
        assert_eq!(row.distributed, first.then_some(0.5));
        assert_eq!(
            row.more,
            if first {
                vec![Some(0.25), None]
            } else {
                vec![]
            }
        );
        assert_eq!(row.state, PageState::ALL.get(row.page.index()).copied());
        assert_eq!(row.change, Change::ALL.get(row.page.index()).copied());
        let site = row.site.as_ref();
        assert_eq!(site.map(|site| site.pages), first.then_some(9));
        assert_eq!((row.importance, row.visits), (0.5, 7));
    });
    sorted
        .map(|row| (row.url.into_owned(), row.page.0))
        .collect()
}

#[test]
fn each_order_is_what_it_says() {
    let pages = [
        ("www.example.org", 2), // A site.
        ("http://example.org/b", 2),
        ("https://192.0.2.7/", 300),
        ("opaque", 1),
        ("http://example.com/é", 5),
        ("http://example.org/a", 4),
    ];
    let numbers = |order| sorted(order, &pages).into_iter().map(|row| row.1);
    assert!(numbers(Order::Id).eq(0..6));
    // Equal ranks by number; 300 is above 5, as a number.
    assert!(numbers(Order::Rank).eq([3, 0, 1, 5, 4, 2]));
    // "", 192.0.2.7, com.example, org.example (a, b), org.example.www
    assert!(numbers(Order::Host).eq([3, 2, 4, 5, 1, 0]));
    assert!(numbers(Order::Url).eq([4, 5, 1, 2, 3, 0]));
    for (url, page) in sorted(Order::Host, &pages) {
        assert_eq!(url, pages[page as usize].0);
    }
}

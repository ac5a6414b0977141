//! Recordings in parts.

use emmc_trace::{analyse, open};

use crate::support::input;

/// A recording that is cut anywhere, with processors that are read at different times: no request is missing, and none
/// counts twice.
#[test]
fn a_recording_in_parts_has_the_requests_of_the_whole() {
    let whole: Vec<String> = {
        let text = (0..300).flat_map(|number: u64| {
            let (at, sector) = (number * 7000, 8 * number);
            let cpu = number % 2;
            let line = move |after: u64, event: &str| {
                let at = at + after;
                format!(
                    "app-7 [00{cpu}] ..... {}.{:06}: {event}: 179,0 WS 4096 () {sector} + 8 [0]\n",
                    at / 1_000_000,
                    at % 1_000_000
                )
            };
            [(at, line(0, "block_rq_issue")), (at + 50_000, line(50_000, "block_rq_complete"))]
        });
        let mut text: Vec<(u64, String)> = text.collect();
        text.sort();
        text.into_iter().map(|(_, line)| line).collect()
    };
    let recorded = |lines: &[&String]| {
        let text: String = lines.iter().map(|line| line.as_str()).collect();
        open(vec![input("f", text.into())]).unwrap()
    };
    let all: Vec<&String> = whole.iter().collect();
    let found = analyse(recorded(&all), None);
    assert_eq!((found.requests, found.unpaired, found.spans[0].device_us.mean), (300, 0, 50_000.0));
    for cuts in [[150, 300], [31, 590], [200, 201]] {
        let mut live = emmc_trace::Live::default();
        let (mut requests, mut waited, mut events) = (0, 0.0, 0);
        let of_cpu = |cpu: u64, from: usize, to: usize| {
            let name = format!("[00{cpu}]");
            whole[from..to].iter().filter(move |line| line.contains(&name))
        };
        // The second processor is read later: its part has ten events more.
        let borders = [(0, 0), (cuts[0], cuts[0] + 10), (cuts[1], cuts[1] + 10), (600, 600)];
        for part in borders.windows(2) {
            let lines = of_cpu(0, part[0].0, part[1].0).chain(of_cpu(1, part[0].1, part[1].1));
            let mut lines: Vec<&String> = lines.collect();
            lines.sort_by_key(|line| all.iter().position(|other| other == line));
            let part = live.next(recorded(&lines), part[1].0 == 600);
            requests += part.requests;
            waited += part.who.threads.iter().map(|thread| thread.waited_ms).sum::<f64>();
            events += part.who.events;
            assert!(part.spans.iter().all(|row| row.device_us.p50 < 50_100.0 && row.device_us.max == 50_000.0));
        }
        assert_eq!((requests, events, live.unpaired()), (300, 600, 0), "{cuts:?}");
        assert!((waited - 300.0 * 50.0).abs() < 1e-6, "{waited}");
    }
}

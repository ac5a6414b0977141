//! Events a second, from the bytes of a recording to its analysis: `cargo bench -p emmc-trace`.
//!
//! The recordings are made up: two processors, direct reads and writes of 4 KiB at depth 64, six events each.
//! `EMMCLAB_RECORDING="FILE FILE"` measures a recording of one's own; `EMMCLAB_WRITE_RECORDING=NAME` writes blktrace's
//! files `NAME.blktrace.0` and `.1` and measures nothing.

#![allow(missing_docs, reason = "the macros of criterion make public functions")]

use std::sync::Arc;
use std::time::Instant;

use criterion::{BatchSize, Criterion, Throughput, black_box, criterion_group, criterion_main};
use emmc_trace::{Input, Storage, analyse, open};

const REQUESTS: u64 = 700_000;
const RUNS: u32 = 20;
const FORMATS: &str = include_str!("../../../testdata/traces/formats_6.18.txt");

/// A request's events: action, id of the format, time within the request.
const STEPS: [(u8, &str, u64); 6] = [
    (1, "block_bio_queue", 0),
    (4, "block_getrq", 500),
    (12, "block_rq_insert", 900),
    (7, "block_rq_issue", 1500),
    (9, "block_io_start", 1600),
    (8, "block_rq_complete", 64_000),
];

/// Time, step, number of the request.
fn steps() -> Vec<(u64, usize, u64)> {
    let of = |number: u64| {
        STEPS.iter().enumerate().map(move |(step, (_, _, after))| (1_000_000 + number * 1000 + after, step, number))
    };
    let mut all: Vec<_> = (0..REQUESTS).flat_map(of).collect();
    all.sort_unstable();
    all
}

fn sector(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 << 3
}

fn blktrace(steps: &[(u64, usize, u64)]) -> Vec<Vec<u8>> {
    let mut files = vec![Vec::new(), Vec::new()];
    let mut sequences = [0u32; 2];
    for &(at, step, number) in steps {
        let cpu = (number & 1) as usize;
        sequences[cpu] += 1;
        let write = number & 2 != 0;
        let action = u32::from(STEPS[step].0) | if write { 2 } else { 1 } << 16 | 8 << 16;
        let file = &mut files[cpu];
        file.extend(0x6561_7407u32.to_le_bytes());
        file.extend(sequences[cpu].to_le_bytes());
        file.extend(at.to_le_bytes());
        file.extend(sector(number).to_le_bytes());
        for word in [4096, action, 100 + cpu as u32, 179 << 20, cpu as u32, 0] {
            file.extend(word.to_le_bytes());
        }
    }
    files
}

fn id(name: &str) -> u32 {
    let at = FORMATS.find(&format!("name: {name}\n")).expect("a format");
    let id = FORMATS[at..].lines().nth(1).expect("its number");
    id.trim_start_matches("ID: ").parse().expect("a number")
}

/// Pages of the ring buffer with the formats of Linux 6.18: 56 to 64 bytes a record.
fn pages(steps: &[(u64, usize, u64)]) -> Vec<Vec<u8>> {
    let ids = STEPS.map(|(_, name, _)| id(name) as u16);
    let mut files = vec![Vec::new(), Vec::new()];
    for (cpu, file) in files.iter_mut().enumerate() {
        let (mut page, mut began, mut last) = (Vec::new(), 0u64, 0u64);
        let mut close = |page: &mut Vec<u8>, began: u64| {
            if !page.is_empty() {
                file.extend(began.to_le_bytes());
                file.extend((page.len() as u64).to_le_bytes());
                page.resize(4080, 0);
                file.append(page);
            }
        };
        for &(at, step, number) in steps.iter().filter(|(.., number)| (number & 1) as usize == cpu) {
            let mut record = vec![0; 64];
            record[..2].copy_from_slice(&ids[step].to_le_bytes());
            record[4..8].copy_from_slice(&(100 + cpu as u32).to_le_bytes());
            record[8..12].copy_from_slice(&(179u32 << 20).to_le_bytes());
            record[16..24].copy_from_slice(&sector(number).to_le_bytes());
            record[24..28].copy_from_slice(&8u32.to_le_bytes());
            let rwbs = if matches!(step, 0 | 1) { 28 } else { 34 };
            record[rwbs..rwbs + 2].copy_from_slice(if number & 2 != 0 { b"WS" } else { b"RS" });
            if page.len() + 4 + record.len() > 4080 {
                close(&mut page, began);
            }
            if page.is_empty() {
                (began, last) = (at, at);
            }
            page.extend((16 | ((at - last) as u32) << 5).to_le_bytes());
            page.extend(record);
            last = at;
        }
        close(&mut page, began);
    }
    files
}

fn inputs(files: &[(String, Arc<dyn Storage>)]) -> Vec<Input> {
    files.iter().map(|(name, storage)| Input { name: name.clone(), storage: storage.clone() }).collect()
}

fn measure(criterion: &mut Criterion, name: &str, files: Vec<(String, Vec<u8>)>, is_synthetic: bool) {
    let files: Vec<(String, Arc<dyn Storage>)> =
        files.into_iter().map(|(name, bytes)| (name, Arc::new(bytes) as Arc<dyn Storage>)).collect();
    let found = analyse(open(inputs(&files)).expect("a recording"), None);
    if is_synthetic {
        assert_eq!((found.requests, found.unpaired, found.lost_events), (REQUESTS, 0, 0), "{:?}", found.unpaired_by);
    }
    println!("{name}: {} events, {} requests, {} unpaired", found.events, found.requests, found.unpaired);
    // Other programs of a shared machine make runs longer, never shorter.
    let run = || {
        let (inputs, began) = (inputs(&files), Instant::now());
        black_box(analyse(open(inputs).expect("a recording"), None));
        began.elapsed()
    };
    let best = (0..RUNS).map(|_| run()).min().unwrap_or_default();
    println!("{name}: {:.1} M events/s in the best of {RUNS} runs", found.events as f64 / best.as_secs_f64() / 1e6);
    let mut group = criterion.benchmark_group("analyse");
    group.sample_size(10).throughput(Throughput::Elements(found.events));
    group.bench_function(name, |bencher| {
        let run = |inputs| black_box(analyse(open(inputs).expect("a recording"), None));
        bencher.iter_batched(|| inputs(&files), run, BatchSize::PerIteration);
    });
    group.finish();
}

fn all(criterion: &mut Criterion) {
    if let Ok(files) = std::env::var("EMMCLAB_RECORDING") {
        let files = files.split_whitespace().map(|name| (name.to_string(), std::fs::read(name).expect("a file")));
        return measure(criterion, "own", files.collect(), false);
    }
    let steps = steps();
    if let Ok(name) = std::env::var("EMMCLAB_WRITE_RECORDING") {
        let files = blktrace(&steps).into_iter().enumerate();
        return files.for_each(|(cpu, file)| std::fs::write(format!("{name}.blktrace.{cpu}"), file).expect("a file"));
    }
    let named = |files: Vec<Vec<u8>>| files.into_iter().enumerate().map(|(cpu, file)| (format!("cpu{cpu}"), file));
    measure(criterion, "blktrace", named(blktrace(&steps)).collect(), true);
    let formats = ("formats".to_string(), FORMATS.as_bytes().to_vec());
    measure(criterion, "pages", named(pages(&steps)).chain([formats]).collect(), true);
}

criterion_group!(benches, all);
criterion_main!(benches);

//! Time to decode an EXT_CSD into its typed form, and into every row that `show` prints.

use std::hint::black_box;

use criterion::{Criterion, criterion_main};
use emmc_regs::ext_csd::ExtCsd;

fn dump(part: &str) -> ExtCsd {
    let path = format!("{}/../../testdata/ext_csd_raw/{part}/{part}.ext_csd.hex", env!("CARGO_MANIFEST_DIR"));
    let digits = std::fs::read_to_string(&path).expect("a dump of testdata");
    let mut bytes = [0; 512];
    for (byte, pair) in bytes.iter_mut().zip(digits.trim().as_bytes().chunks(2)) {
        *byte =
            std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()).expect("two hex digits");
    }
    ExtCsd::from_bytes(bytes)
}

fn decode(c: &mut Criterion) {
    for part in ["samsung-klm-8g", "aaru-64g", "ac100-mmc32g"] {
        let ext_csd = dump(part);
        c.bench_function(&format!("decode/{part}"), |b| b.iter(|| black_box(&ext_csd).decode()));
        c.bench_function(&format!("rows/{part}"), |b| b.iter(|| black_box(&ext_csd).rows(true).count()));
    }
}

#[allow(missing_docs)]
mod group {
    use super::decode;
    criterion::criterion_group!(benches, decode);
}
criterion_main!(group::benches);

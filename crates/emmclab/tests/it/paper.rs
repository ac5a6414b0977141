//! The HTML report on paper: at most four pages for a study of a dump.

use std::path::Path;
use std::process::Command;

use crate::support::{emmclab, scratch, skip, testdata};

const PAGES_MAX: usize = 4;

/// The number of page objects in a PDF: `/Type /Page`, but not `/Type /Pages`.
fn pages(pdf: &[u8]) -> usize {
    let types = pdf.windows(5).enumerate().filter(|(_, word)| word == b"/Type");
    types.filter(|(at, _)| is_page(&pdf[at + 5..])).count()
}

fn is_page(value: &[u8]) -> bool {
    let blanks = value.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    value[blanks..].strip_prefix(b"/Page").is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_alphanumeric))
}

/// Prints a page to a PDF, where there is a Chromium.
fn print(page: &Path, folder: &Path) -> Option<Vec<u8>> {
    let pdf = folder.join("page.pdf");
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let printed = format!("--print-to-pdf={}", pdf.display());
    let source = format!("file://{}", page.display());
    let programs = ["chromium", "chromium-browser", "google-chrome"].into_iter();
    let mut runs = programs.filter_map(|program| {
        let options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", &profile, &printed];
        Command::new(program).args(options).arg(&source).output().ok()
    });
    let output = runs.next()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(std::fs::read(pdf).unwrap())
}

#[test]
fn a_basic_study_prints_on_four_pages_at_most() {
    let folder = scratch("paper");
    // The last one has findings to act on, hence its exit code.
    for (dump, code) in [
        ("samsung-klm-8g/samsung-klm-8g.ext_csd.hex", 0),
        ("aaru-64g/aaru-64g.ext_csd.hex", 0),
        ("ac100-mmc32g/ac100-mmc32g.ext_csd.hex", 1),
    ] {
        let page = folder.join("study.html");
        let (source, saved) = (testdata(&format!("ext_csd_raw/{dump}")), page.display().to_string());
        emmclab(["study", &source, "-o", &saved, "--force"]).exits(code);
        let Some(pdf) = print(&page, &folder) else { return skip("no Chromium to print with") };
        let count = pages(&pdf);
        assert!((1..=PAGES_MAX).contains(&count), "{dump}: {count} pages");
    }
}

#[test]
fn only_page_objects_are_counted() {
    let pdf = b"%PDF-1.4 1 0 obj <</Type /Pages /Count 2>> 2 0 obj <</Type /Page\n/Parent 1 0 R>> <</Type/Page>> /Type";
    assert_eq!(pages(pdf), 2);
    assert_eq!(pages(b"%PDF"), 0);
}

//! The report as one HTML file: self-contained, and rendered without errors by a browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::cards::s0j56;
use crate::support::{emmclab, save, scratch, skip, testdata};

/// Names that a browser never loads: namespaces, and the origins of the chart library and its licences.
const NAMES_ONLY: [&str; 5] = [
    "http://www.w3.org/",
    "https://vega.github.io/",
    "https://github.com/",
    "http://www.apache.org/",
    "http://unlicense.org",
];

/// The prefix of a page's messages in the log.
const CONSOLE: &str = ":CONSOLE";

/// A report whose chart library is used: a table of erase counts.
fn with_chart(folder: &Path) -> String {
    let page = folder.join("chart.html").to_str().unwrap().to_owned();
    let mut card = s0j56();
    // The counts are of a part of version 5.0; another's would be refused.
    card[192] = 7;
    let (card, counts) = (save(folder, "card.bin", card), testdata("seeds_console/emmcparm_sect_count.txt"));
    let run = emmclab(["study", &card, "--with", &counts, "-o", &page]).exits(0);
    assert_eq!(run.stdout, format!("{page}: written\n"));
    page
}

/// A report of a worn card with findings.
fn with_findings(folder: &Path) -> String {
    let mut worn = s0j56();
    (worn[267], worn[268], worn[269], worn[167]) = (3, 0x0b, 0x02, 0x1e);
    let page = folder.join("findings.html").to_str().unwrap().to_owned();
    emmclab(["study", &save(folder, "worn.bin", worn), "-o", &page]).exits(1);
    page
}

/// The pictures of a recording whose thread has markup in its name.
#[cfg(feature = "trace")]
fn with_pictures(folder: &Path) -> String {
    let mut text = String::new();
    for number in 0..40 {
        for (micros, event) in [
            (0, "block_bio_queue: 179,0 WS 0 + 8 [x]"),
            (5, "block_rq_issue: 179,0 WS 4096 () 0 + 8 [x]"),
            (300 + number % 7, "block_rq_complete: 179,0 WS () 0 + 8 [0]"),
        ] {
            text += &format!(" </script><b>-5  [000] .....  {number}.{micros:06}: {event}\n");
        }
    }
    let page = folder.join("pictures.html").to_str().unwrap().to_owned();
    let recording = save(folder, "t.txt", text);
    let run = emmclab(["trace", "analyse", &recording, "--html", &page]).exits(0);
    assert_eq!(run.stdout, format!("{page}: written\n"));
    page
}

#[cfg(feature = "trace")]
#[test]
fn pictures_of_a_recording_are_drawn_and_escape_names() {
    let folder = scratch("pictures");
    let page = with_pictures(&folder);
    let html = std::fs::read_to_string(&page).unwrap();
    for section in ["drawn-spans", "latency", "timeline", "size", "depth", "spans"] {
        assert!(html.contains(&format!("<section id=\"{section}\"")), "no {section}");
    }
    assert!(html.contains("&lt;/script&gt;&lt;b&gt; 5") && !html.contains("</script><b>"), "a name is markup");
    let again = emmclab(["trace", "analyse", &folder.join("t.txt").display().to_string(), "--html", &page]);
    assert!(again.exits(2).stderr.contains("exists already; --force replaces it"));
    let Some(browser) = browser() else { return skip("no Chromium here; Debian: apt install chromium") };
    let (dom, complaints) = render(&browser, &folder, &page, &["--dump-dom"]);
    assert_eq!(complaints, [] as [&str; 0]);
    assert_eq!(dom.matches("class=\"marks\"").count(), 5, "not every chart was drawn");
}

#[test]
fn the_file_is_self_contained() {
    let folder = scratch("self_contained");
    #[cfg(feature = "trace")]
    let pictures = [with_pictures(&folder)];
    #[cfg(not(feature = "trace"))]
    let pictures: [String; 0] = [];
    for page in [with_chart(&folder), with_findings(&folder)].into_iter().chain(pictures) {
        let html = std::fs::read_to_string(&page).unwrap();
        assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"), "{page}");
        for address in ["http://", "https://"].iter().flat_map(|scheme| html.match_indices(scheme)) {
            let here = &html[address.0..];
            let named = here.split(|c: char| c.is_whitespace() || "\"'`)<>".contains(c)).next().unwrap_or_default();
            // What the library compares addresses with is no address.
            let known = named.len() <= "https://".len() || NAMES_ONLY.iter().any(|name| named.starts_with(name));
            assert!(known, "{page} names {named}");
        }
        let lower = html.to_ascii_lowercase();
        for loads in [
            "<link",
            "<iframe",
            "<object",
            "<embed",
            "<base",
            "@import",
            "url(http",
            "url(//",
            "<script src",
            "<img src=\"h",
        ] {
            assert!(!lower.contains(loads), "{page} has {loads}");
        }
        // The content policy says so too.
        assert!(html.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"), "{page}");
    }
}

#[test]
fn the_file_has_the_findings() {
    let folder = scratch("findings");
    let html = std::fs::read_to_string(with_findings(&folder)).unwrap();
    for phrase in
        ["past 100 %", "Write reliability is off", "critical", "7512 MiB", "WR_REL_SET[167] = 0x1e", "eMMC 5.1"]
    {
        assert!(html.contains(phrase), "no {phrase:?}");
    }
    let chart = std::fs::read_to_string(with_chart(&folder)).unwrap();
    assert!(chart.contains("Erase counts block by block") && chart.contains("1689"));
    // The chart library is included only with a chart.
    assert!(chart.len() > 500_000 && html.len() < 100_000, "{} and {} bytes", chart.len(), html.len());
}

#[test]
fn the_same_study_gives_the_same_file() {
    let folder = scratch("same");
    let file = |name: &str| {
        let page = folder.join(name);
        emmclab(["study", "--demo", "-o", page.to_str().unwrap()]).exits(0);
        std::fs::read(page).unwrap()
    };
    assert_eq!(file("a.html"), file("b.html"));
}

#[test]
fn with_json_the_document_is_printed_too() {
    let page = scratch("json").join("report.html");
    let document = emmclab(["study", "--demo", "--json", "-o", page.to_str().unwrap()]).exits(0).json();
    assert_eq!(document["schema"], "emmclab.study/1");
    assert!(std::fs::read_to_string(page).unwrap().starts_with("<!DOCTYPE html>"));
}

#[test]
fn a_browser_renders_the_page_without_errors() {
    let folder = scratch("browser");
    let Some(browser) = browser() else { return skip("no Chromium here; Debian: apt install chromium") };
    // That a complaint would be seen.
    let bad = save(&folder, "bad.html", "<!DOCTYPE html><title>x</title><script>console.error('seen')</script>");
    let (_, complaints) = render(&browser, &folder, &bad, &["--dump-dom"]);
    assert!(complaints.iter().any(|line| line.contains("seen")), "complaints are not seen: {complaints:?}");
    let (chart, findings) = (with_chart(&folder), with_findings(&folder));
    for page in [&chart, &findings] {
        for more in [&[] as &[&str], &["--blink-settings=preferredColorScheme=0"]] {
            let (_, complaints) = render(&browser, &folder, page, &[more, &["--dump-dom"]].concat());
            assert_eq!(complaints, [] as [&str; 0], "{page} {more:?}");
        }
        let paper = format!("--print-to-pdf={page}.pdf");
        let (_, complaints) = render(&browser, &folder, page, &[&paper]);
        assert_eq!(complaints, [] as [&str; 0], "{page} on paper");
        assert!(std::fs::read(format!("{page}.pdf")).unwrap().starts_with(b"%PDF-"), "{page}");
    }
    let (dom, _) = render(&browser, &folder, &chart, &["--dump-dom"]);
    assert!(dom.contains("class=\"marks\""), "the chart was not drawn");
}

/// The browser's standard output, and every line that the page wrote to its console.
///
/// The page's clock is the browser's virtual one, which stops while the page is being drawn.
fn render(browser: &Path, folder: &Path, page: &str, args: &[&str]) -> (String, Vec<String>) {
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=10000", &profile])
        .args(args)
        .arg(format!("file://{page}"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", browser.display());
    let complaints = stderr.lines().filter(|line| line.contains(CONSOLE)).map(str::to_owned).collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), complaints)
}

/// Chromium, if it is installed.
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name))).find(|file| file.is_file())
}

//! Makes the code of URLFrontier's messages and calls from its protocol file, in Rust alone:
//!
//! ```sh
//! cd tools/protocol && cargo run --release && cargo fmt --manifest-path ../../Cargo.toml --all
//! ```
//!
//! The code is kept in the repository, so that building the frontier needs none of this.

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/crates/frontier");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = protox::compile(["urlfrontier.proto"], [FOLDER])?;
    let made = std::env::temp_dir().join(format!("cashrank-protocol-{}", std::process::id()));
    std::fs::create_dir_all(&made)?;
    tonic_prost_build::configure()
        .build_client(false)
        .build_transport(false)
        .out_dir(&made)
        .compile_fds(files)?;
    let code = std::fs::read_to_string(made.join("urlfrontier.rs"))?;
    std::fs::remove_dir_all(&made)?;
    let head = "//! URLFrontier's messages and calls, made from `urlfrontier.proto` by `tools/protocol`: not to be changed by \
                hand.\n#![allow(missing_docs, clippy::all, clippy::pedantic)]\n\n";
    std::fs::write(format!("{FOLDER}/src/wire.rs"), format!("{head}{code}"))?;
    Ok(())
}

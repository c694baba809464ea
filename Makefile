# kerntune: `make help` says what there is. Nothing here asks a question.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
KERNTUNE := target/release/kerntune

# Rust that rustup installed, also where the shell does not know of it yet.
CARGO_HOME ?= $(HOME)/.cargo
export PATH := $(CARGO_HOME)/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup setup-demo build build-dist demo test test-fast attack bench objects check install uninstall book dist clean
.NOTPARALLEL:

help: ## show this
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):[^#]*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: ## install what is missing (Debian packages, Rust); asks for root through sudo
	@scripts/setup

setup-demo:
	@scripts/setup demo

build: ## build kerntune and its recorder
	$(CARGO) build --release --locked --workspace

objects: ## build kerntune-objects, which reaches S3 for `kerntune matrix` (docs/matrix.md), beside kerntune
	$(CARGO) build --release --locked --manifest-path crates/objects/Cargo.toml --target-dir target/objects
	mkdir -p target/release && cp target/objects/release/kerntune-objects target/release/

demo: setup-demo build ## tune Linux 6.12 for the workload rr and show what it gained
	@scripts/demo $(KERNTUNE)

test: setup build ## all tests, those on real kernels included
	@CARGO=$(CARGO) scripts/test $(KERNTUNE)

test-fast: ## the tests that need no kernel
	$(CARGO) test --release --locked --workspace --lib --bins $$(scripts/tests-without-kernel) -- --skip in_any_directory
	scripts/tests-without-kernel cli | xargs $(CARGO) test --release --locked --workspace --test cli --

attack: setup build ## kills, full disks, changed and foreign files, hostile workloads: the whole of it (docs/store.md)
	@scripts/attack

bench: setup ## what recording costs, and how fast the parts of kerntune are
	@# All at once: packages built one by one would be built again with other features.
	$(CARGO) build --profile dist --locked --workspace --bins --lib --examples
	target/dist/examples/recording_cost
	target/dist/examples/analyze_bench
	target/dist/examples/trace_readers
	target/dist/examples/fetch_cost

check: ## formatting, lints, documentation, scripts, spelling, prose, fuzz targets (installs linters)
	@scripts/setup checks
	@CARGO=$(CARGO) scripts/check

build-dist:
	$(CARGO) build --profile dist --locked --workspace

install: build-dist ## install below PREFIX (/usr/local): program, recorder, manual pages, completions, documents
	@scripts/install $(DESTDIR)$(PREFIX)

uninstall: ## undo install
	cd $(DESTDIR)$(PREFIX) && rm -rf bin/kerntune lib/kerntune share/doc/kerntune share/man/man1/kerntune.1 \
	    share/man/man1/kerntune-*.1 share/bash-completion/completions/kerntune share/fish/vendor_completions.d/kerntune.fish \
	    share/zsh/site-functions/_kerntune

book: ## the documents as a book in target/book, to be read without a network (installs mdBook)
	@CARGO=$(CARGO) scripts/book

dist: build-dist ## a tarball and a Debian package in dist/, tried
	@scripts/dist

clean: ## remove what was compiled; results in .kerntune stay
	$(CARGO) clean

// swift-tools-version: 6.2
import PackageDescription

/// The path of libFuzzer's library without a `main`, for packaging/bench/fuzz.sh. With it, the build makes the fuzzer instead
/// of the tests that read its corpora, and instruments all our targets. The value `none` makes a program that only reads the
/// corpora, for packaging/checks/sanitize/valgrind.sh.
let fuzzer = Context.environment["INLET_FUZZER"]
let instrumented: [SwiftSetting] = [
    .unsafeFlags((fuzzer == "none" ? [] : ["-sanitize=fuzzer,address"]) + ["-enable-testing"])
]

/// One standard for every target: Swift 6 mode, explicit existentials, no leaking imports, no warnings.
let standard: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .treatAllWarnings(as: .error),
    ] + (fuzzer == nil ? [] : instrumented)

/// packaging/lib.sh optimises our dependencies in debug builds too, and those of our targets that have the standard alone: tests
/// spend half of their time there. All others are not optimised, and compile in seconds.
let settings = standard + [.unsafeFlags(["-Xfrontend", "-Onone"], .when(configuration: .debug))]

func library(_ name: String, _ dependencies: [Target.Dependency], _ settings: [SwiftSetting] = settings) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], resources: [Resource] = []) -> Target {
    .testTarget(
        name: name, dependencies: dependencies + ["InletTestSupport"], resources: resources, swiftSettings: settings)
}

let system = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let signals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore = Target.Dependency.product(name: "HummingbirdCore", package: "hummingbird")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioHTTP = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let sqlite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let arguments = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let heap = Target.Dependency.product(name: "HeapModule", package: "swift-collections")

/// The commit's hash and day for `inlet --version`, from packaging/lib.sh; empty in debug builds. Only one C file depends on
/// it, so that a new commit recompiles nothing else.
let commit = Context.environment["INLET_COMMIT", default: ""].filter {
    $0.isASCII && ($0.isLetter || $0.isNumber || "+, -".contains($0))
}

/// The part of ICU's data that Inlet uses, as an object file from packaging/lib.sh. Without it all 34 MB are linked.
let unicodeData = Context.environment["INLET_ICU", default: ""]

/// No library looks up symbols of the program, so it exports none. lld keeps constants apart from code: fewer pages of the
/// program are in memory.
let linking: [LinkerSetting] = [
    .unsafeFlags(
        ["-use-ld=lld", "-Xlinker", "--no-export-dynamic"] + (unicodeData.isEmpty ? [] : [unicodeData]),
        .when(platforms: [.linux], configuration: .release))
]

let fuzzed: [Target.Dependency] = [
    "InletCore", "InletLinux", "InletMedia", "InletConfig", "InletTransfer", "InletPipelines", "CHost", system,
]

/// The parsers of untrusted bytes with their corpora: as tests, or as the fuzzer's program.
func fuzzTarget() -> Target {
    guard let fuzzer else {
        return .testTarget(
            name: "FuzzTests", dependencies: fuzzed + ["InletTestSupport"], exclude: ["Driver"],
            resources: [.copy("Corpora")], swiftSettings: settings)
    }
    return .executableTarget(
        name: "inlet-fuzz", dependencies: fuzzed, path: "Tests/FuzzTests", exclude: ["ReplayTests.swift", "Corpora"],
        swiftSettings: settings + [.unsafeFlags(["-parse-as-library"])] + (fuzzer == "none" ? [.define("REPLAY")] : []),
        linkerSettings: fuzzer == "none"
            ? []
            : [.unsafeFlags(["-sanitize=address", fuzzer]), .linkedLibrary("stdc++"), .linkedLibrary("m")])
}

let package = Package(
    name: "Inlet",
    products: [
        .executable(name: "inlet", targets: ["inlet"]), .executable(name: "inlet-host", targets: ["inlet-host"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
        .package(url: "https://github.com/apple/swift-http-types", exact: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
        .package(url: "https://github.com/apple/swift-system", exact: "1.8.1"),
        .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", exact: "2.28.1", traits: []),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
    ],
    targets: [
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .systemLibrary(name: "CXXHash", pkgConfig: "libxxhash", providers: [.apt(["libxxhash-dev"])]),
        .systemLibrary(name: "CISAL", pkgConfig: "libisal", providers: [.apt(["libisal-dev"])]),
        .target(name: "CBuild", cSettings: commit.isEmpty ? [] : [.define("INLET_COMMIT", to: "\"\(commit)\"")]),
        // Optimised in debug builds too: tests hash a lot.
        .target(
            name: "CHash", dependencies: ["CCrypto"],
            cSettings: [.unsafeFlags(["-O2"], .when(configuration: .debug))]),
        // The compiler embeds the page's files (`#embed`), and lists them as dependencies of the build.
        .target(name: "InletWeb", exclude: ["page"]),
        .systemLibrary(name: "CLinux"),
        // The schema of the fleet's database, embedded in the same way.
        .target(name: "CFleetSchema", exclude: ["v1"]),
        // Opened at run time, and only where agents share a PostgreSQL: nothing links it.
        .systemLibrary(name: "CPostgres", providers: [.apt(["libpq-dev"])]),
        // The helper process: as a program of its own, and in `inlet` for where only that was copied.
        .target(name: "CHost", cSettings: [.headerSearchPath("../CLinux")]),
        .executableTarget(
            name: "inlet-host", dependencies: ["CHost"],
            // It is C alone: nothing of Swift begins in it.
            linkerSettings: [.unsafeFlags(["-nostartfiles"])]),
        library("InletCore", ["CCrypto", "CHash", system, heap], standard),
        library("InletLinux", ["InletCore", "CHost", "CLinux", system]),
        library("InletMedia", ["InletCore", "InletLinux", system]),
        library("InletConfig", ["InletCore", "CYAML", system], standard),
        library("InletJournal", ["InletCore", "CSQLite", grdb, sqlite, system]),
        library("InletTransfer", ["InletCore", "InletLinux", "CCurl", "CHash", "CISAL", "CXXHash", system]),
        library("InletPipelines", ["InletCore", "InletLinux", "InletTransfer", "CCrypto", system]),
        library("InletFleet", ["InletCore", "InletLinux", "CFleetSchema", "CPostgres", lifecycle, system]),
        library(
            "InletAgent",
            [
                "InletCore", "InletFleet", "InletLinux", "InletMedia", "InletConfig", "InletJournal", "InletPipelines",
                lifecycle,
                logging, system,
            ]),
        library(
            "InletDashboard",
            [
                "InletCore", "InletLinux", "InletConfig", "InletAgent", "InletFleet", "InletJournal", "InletTransfer",
                "InletWeb",
                hummingbird,
                hummingbirdCore, httpTypes, nioCore, nioHTTP, nioPosix, lifecycle, logging, system,
            ]),
        library(
            "InletSandbox",
            [
                "InletCore", "InletLinux", hummingbird, httpTypes, nioCore, nioPosix, lifecycle, logging,
                system,
            ], standard),
        .executableTarget(
            name: "inlet",
            dependencies: [
                "InletCore", "InletLinux", "InletMedia", "InletConfig", "InletJournal", "InletPipelines",
                "InletAgent", "InletDashboard", "InletFleet", "InletSandbox", "CBuild", arguments, lifecycle, signals,
                system,
            ],
            swiftSettings: settings, linkerSettings: linking),
        .target(
            name: "InletTestSupport",
            dependencies: [
                "InletCore", "InletFleet", "InletLinux", "InletSandbox", "CHost", lifecycle, logging, system,
            ],
            path: "Tests/Support", swiftSettings: standard),
        .target(
            name: "InletJournalSupport", dependencies: ["InletJournal", "InletCore"], path: "Tests/JournalSupport",
            swiftSettings: settings),
        tests("InletCoreTests", ["InletCore", system]),
        tests("InletLinuxTests", ["InletLinux", "InletCore", "CHost", system]),
        tests("InletMediaTests", ["InletMedia", "InletLinux", "InletCore", system]),
        tests("InletConfigTests", ["InletConfig", "InletCore", system], resources: [.copy("Fixtures")]),
        .target(name: "CFaultVFS", dependencies: [sqlite], path: "Tests/CFaultVFS"),
        tests("InletJournalTests", ["InletJournal", "InletJournalSupport", "InletCore", "CFaultVFS", system]),
        tests("InletTransferTests", ["InletTransfer", "InletLinux", "InletCore", "CCrypto", "CHash", system]),
        tests(
            "InletPipelinesTests",
            ["InletPipelines", "InletTransfer", "InletSandbox", "InletLinux", "InletCore", system]),
        tests("InletSandboxTests", ["InletSandbox", "InletCore", httpTypes, nioCore, system]),
        tests("InletFleetTests", ["InletFleet", "InletLinux", "InletCore", lifecycle, system]),
        tests("InteropTests", ["InletPipelines", "InletTransfer", "InletLinux", "InletCore", system]),
        tests(
            "InletAgentTests",
            [
                "InletAgent", "InletDashboard", "InletFleet", "InletJournal", "InletJournalSupport", "InletConfig",
                "InletPipelines", "InletTransfer", "InletSandbox", "InletLinux", "InletCore", lifecycle, system,
            ]),
        tests(
            "InletDashboardTests",
            [
                "InletDashboard", "InletAgent", "InletFleet", "InletJournal", "InletJournalSupport", "InletPipelines",
                "InletTransfer", "InletMedia", "InletLinux", "InletCore", hummingbird, hummingbirdCore, httpTypes,
                nioCore, lifecycle,
                system,
            ]),
        tests(
            "CommandTests",
            [
                "InletFleet", "InletSandbox", "InletTransfer", "InletJournal", "InletJournalSupport", "InletLinux",
                "InletCore", "inlet", system,
            ]),
        fuzzTarget(),
    ],
    // C23: #embed.
    cLanguageStandard: .c2x
)

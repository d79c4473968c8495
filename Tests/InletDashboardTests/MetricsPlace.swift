import Foundation
import InletAgent
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// A journal in a folder of its own, one destination `here`, and agents on it that are made and not run.
struct MetricsPlace: Sendable {
    private let directory: TemporaryDirectory
    let root: FilePath
    let journal: Journal

    static let room = ClaimRoom(destination: "here", limits: [.big: 9])

    init() throws {
        directory = try TemporaryDirectory()
        // A name that must be escaped twice: for people, and in a label.
        root = try directory.makeDirectory("drop \"1\"\n")
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
    }

    /// Takes a file of 9 bytes, an hour ago. - Returns: its job.
    @discardableResult
    func admit(_ name: String) async throws -> Int64 {
        let plan = Plan(
            route: "all", category: "videos", key: name, mediaType: "video/mp4", destinations: ["here"])
        let identity = FileIdentity(size: 9, modified: 1, changed: 1, inode: 1, device: 1)
        let arrival = Arrival(root: root, path: FilePath(name), identity: identity)
        let admission = FileAdmission(arrival, plan: plan, lanes: ["here": .big], uptimes: [:])
        let outcome = try await journal.admit(admission, at: .now + .seconds(-3600))
        guard case .admitted(let id) = outcome else {
            Issue.record("\(outcome)")
            return 0
        }
        return id
    }

    /// Ends the delivery whose turn it is.
    func settle(_ settlement: Settlement) async throws {
        let done = try await journal.withClaim(.big, rooms: [Self.room], clock: { .now }) { _ in
            (settlement, ())
        }
        #expect(done != nil)
    }

    func agent(_ log: EventLog) async throws -> Agent {
        var settings = Settings(
            stateDirectory: directory.path, watch: [WatchSettings(path: root)],
            routes: [Route(name: "all", key: try KeyTemplate("{name}"), to: ["here"])])
        settings.bandwidth.all = Timetable(1_000_000)
        let here = Destination(
            name: "here", type: "test", pipeline: Unused(), smallLimit: 0, connections: 1, maxInFlight: nil)
        return try await Agent(
            settings: settings, destinations: [here], journal: journal, log: log,
            label: Agent.Label(version: "test", configuration: "test"))
    }
}

/// Nothing is ever sent by an agent that does not run.
private struct Unused: Pipeline {
    func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome { throw DeliveryError(.giveUp, .badRequest, "nothing is taken") }

    func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {}
    func probe() async throws(DeliveryError) -> String { "here" }
}

/// What the makers of Prometheus check pages and rules with.
enum Promtool {
    private static let path = "/usr/bin/promtool"

    static var isThere: Bool { FileManager.default.isExecutableFile(atPath: path) }

    /// `promtool check metrics`: its exit code, and what it says of a page.
    static func check(_ page: String) throws -> (code: Int32, said: String) {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Array(page.utf8), to: "page")
        return try run(["check", "metrics"], input: Foundation.FileHandle(forReadingAtPath: file.string))
    }

    static func run(_ arguments: [String], input: Foundation.FileHandle?) throws -> (code: Int32, said: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        let output = Pipe()
        process.standardInput = input ?? Foundation.FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return (process.terminationStatus, said)
    }
}

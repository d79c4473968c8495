import Foundation
import InletAgent
import InletCore
import InletDashboard
import InletFleet
import InletLinux
import InletSandbox
import SystemPackage

/// Drops equal names at all agents of a demo's fleet, and shows where they arrive.
struct FleetDemoProgress: Sendable {
    typealias Station = FleetDemoFolders.Station

    /// A file that was dropped, and its content.
    struct Sample: Sendable {
        let station: Station
        let name: String
        let content: [UInt8]
    }

    private let folders: FleetDemoFolders
    private let store: S3Sandbox
    private let admin: PostgresAddress

    /// Names and bytes.
    private static let files = [("interview.mov", 2 << 20), ("IMG_0001.JPG", 300_000), ("notes.txt", 2000)]
    /// For the agents' start, for the files, and for the receipts.
    private static let patience = Duration.seconds(120)
    private static let pause = Duration.milliseconds(150)

    init(_ folders: FleetDemoFolders, _ store: S3Sandbox, _ admin: PostgresAddress) {
        (self.folders, self.store, self.admin) = (folders, store, admin)
    }

    /// Waits until each agent is in the fleet.
    func awaitAgents() async throws {
        for station in folders.stations {
            let report = try await Self.awaitAgent(station)
            Console.print("\(Console.tint("✓", .good)) \(station.name) has joined, tag \(report.tag ?? "")")
        }
    }

    static func awaitAgent(_ station: Station) async throws -> FleetReport {
        try await patiently("\(station.name) is in the fleet; see \(station.log.display)") {
            let report = try await ask(station) { try await $0.find(Endpoints.fleet) }
            return report?.state == .live ? report : nil
        }
    }

    /// Drops the samples at all agents at once.
    func drop() throws -> [Sample] {
        Console.print("\nEach station gets \(Self.files.map(\.0).joined(separator: ", ")), with contents of its own.")
        var samples: [Sample] = []
        for (name, size) in Self.files {
            for station in folders.stations {
                let line = "\(name) of \(station.name)\n"
                let content = Array(String(repeating: line, count: size / line.utf8.count).utf8)
                try DurableFile.write(content, to: station.drop.appending(name), mode: 0o644)
                samples.append(Sample(station: station, name: name, content: content))
            }
        }
        return samples
    }

    /// Shows each arrival, until all have ended.
    func awaitDeliveries(of samples: [Sample]) async throws {
        var shown: Set<String> = []
        for station in folders.stations {
            let own = samples.filter { $0.station.name == station.name }.count
            _ = try await Self.patiently("the files of \(station.name) have ended; see \(station.log.display)") {
                let jobs = try await Self.jobs(of: station)
                for job in jobs where job.finished_at != nil && shown.insert(job.path).inserted {
                    Console.print(Self.line(job, station))
                }
                return jobs.filter { $0.finished_at != nil }.count >= own ? true : nil
            }
        }
    }

    private static func line(_ job: JobReport, _ station: Station) -> String {
        let name = FilePath(job.path).lastComponent?.string ?? job.path
        guard let key = job.deliveries.first?.key, job.state == FileState.delivered.rawValue else {
            return "\(Console.tint("✗", .bad)) \(station.name) \(name): \(job.state) "
                + DisplayText.escape(job.deliveries.first?.reason ?? "")
        }
        return "\(Console.tint("✓", .good)) \(station.name) \(name) → store: \(key)"
    }

    /// Compares the store with what was dropped, and asks the fleet who has a file.
    ///
    /// - Returns: whether all arrived, each under a key of its own.
    func tell(_ samples: [Sample]) async throws -> Bool {
        var keys: [String: String] = [:]
        var isGood = true
        for station in folders.stations {
            for job in try await Self.jobs(of: station) {
                let name = FilePath(job.path).lastComponent?.string ?? ""
                keys["\(station.name)/\(name)"] = job.deliveries.first?.key
            }
        }
        let objects = Dictionary(store.objects().map { ($0.key, $0) }, uniquingKeysWith: { $1 })
        for sample in samples {
            let object = keys["\(sample.station.name)/\(sample.name)"].flatMap { objects[$0] }
            let stored = object.flatMap { DurableFile.readIfPossible($0.path, limit: 16 << 20) }
            guard stored != sample.content || object?.versions != 1 else { continue }
            isGood = false
            Console.print("\(Console.tint("✗", .bad)) \(sample.station.name): \(sample.name) is not at the store")
        }
        isGood = isGood && Set(keys.values).count == samples.count
        if isGood {
            Console.print(
                "\n\(Console.tint("✓", .good)) \(samples.count) files arrived, each under a key of its own, "
                    + "all equal to their sources.")
        }
        try await findOwners(of: Self.files[0].0)
        return isGood
    }

    private func findOwners(of name: String) async throws {
        let found = try await Self.patiently("the receipts of \(name) are in the fleet") {
            let rows = try await FleetConnection.use(admin) { try $0.search(name, limit: 100) }
            return rows.count >= folders.stations.count ? rows : nil
        }
        Console.print("\nWhich machine has \(Console.tint(name, .strong))?\n")
        let rows = found.sorted { $0.agent < $1.agent }.map { row in
            [StyledText(row.agent, .strong), StyledText(row.path), StyledText(row.key ?? "-")]
        }
        Console.print(Console.table([.text("AGENT"), .name("FILE"), .name("KEY")], rows, indent: 2))
    }

    func invite() async throws {
        let first = folders.stations[0]
        let link = try await Self.ask(first) { try await $0.ask(Endpoints.loginLink).url }
        Console.print(
            """

            The page of \(first.name): \(Console.tint(link ?? "see \(first.log.display)", .strong))
            Drop your own files into \(folders.stations.map(\.drop.display).joined(separator: ", "))
            or into the share of all three, \(folders.shared.display).
            Ctrl-C ends the demo and removes all of it, also your own files in these folders.

            In another terminal, run:
              inlet fleet status --config \(first.configuration.display)
              inlet fleet places --config \(first.configuration.display)
              inlet fleet search \(Self.files[0].0) --config \(first.configuration.display)

            """)
    }

    // MARK: - Questions

    /// The answer of an agent; nil while it does not run yet.
    private static func ask<Answer>(
        _ station: Station, _ body: (ControlClient) async throws -> Answer?
    ) async throws -> Answer? {
        let socket = StateDirectory.controlSocket(in: station.state)
        guard let agent = try await ControlAccess.runningAgent(at: socket) else { return nil }
        defer { agent.shutdown() }
        return try await body(agent)
    }

    private static func jobs(of station: Station) async throws -> [JobReport] {
        try await ask(station) { try await $0.ask(Endpoints.list, body: JobSelection()) } ?? []
    }

    /// Asks again and again until there is an answer.
    static func patiently<Value>(_ what: String, _ question: () async throws -> Value?) async throws -> Value {
        let end = ContinuousClock.now.advanced(by: patience)
        while ContinuousClock.now < end {
            if let value = try await question() { return value }
            try await Task.sleep(for: pause)
        }
        throw Refusal("the demo waited in vain until \(what)")
    }
}

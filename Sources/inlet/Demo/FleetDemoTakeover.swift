import InletAgent
import InletCore
import InletFleet
import InletLinux
import InletSandbox
import SystemPackage

/// Kills the agent that lists the demo's share while it sends a file of it, and shows which agent continues.
struct FleetDemoTakeover: Sendable {
    typealias Station = FleetDemoFolders.Station

    private let folders: FleetDemoFolders
    private let store: S3Sandbox
    private let admin: PostgresAddress
    private let kills: FleetDemoKills

    private static let clip = "clip.mov"
    /// Comes while nobody lists the share.
    private static let later = "take-2.mov"
    private static let partSize = 5 << 20
    private static let parts = 4

    init(_ folders: FleetDemoFolders, _ store: S3Sandbox, _ admin: PostgresAddress, _ kills: FleetDemoKills) {
        (self.folders, self.store, self.admin, self.kills) = (folders, store, admin, kills)
    }

    /// - Returns: whether both files arrived, whole and once.
    func play() async throws -> Bool {
        let first = try await awaitLister()
        Console.print(
            """

            All stations watch \(folders.shared.display) as one share. \(first.name) lists it and begins to send \
            \(Self.clip); the others are drained until then.
            """)
        let clip = Self.content(Self.parts * Self.partSize)
        try await send(clip, by: first)
        let (before, start) = (store.traffic.counts[.uploadPart] ?? 0, ContinuousClock.now)
        let take = Self.content(300_000)
        try DurableFile.write(take, to: folders.shared.appending(Self.later), mode: 0o644)
        let next = try await awaitLister(besides: first)
        let wait = start.duration(to: .now).milliseconds / 1000
        let sender = try await awaitReceipt(of: Self.clip)
        _ = try await awaitReceipt(of: Self.later)
        let rest = (store.traffic.counts[.uploadPart] ?? 0) - before
        let who = sender == next.name ? "and sent the rest" : "and \(sender) sent the rest"
        Console.print(
            """
            \(Console.tint("✓", .good)) \(first.name) was killed while it sent \(Self.clip); \(next.name) lists the \
            share \(wait) s later \(who): \(rest.counted("part")) of \(Self.parts)
            """)
        let isWhole = [(Self.clip, clip), (Self.later, take)].allSatisfy { hasOnce($0, $1) }
        Console.print(
            isWhole
                ? "\(Console.tint("✓", .good)) Both files of the share arrived once, equal to their sources."
                : "\(Console.tint("✗", .bad)) The files of the share are not at the store as they were dropped.")
        kills.restart(first)
        _ = try await FleetDemoProgress.awaitAgent(first)
        Console.print("\(Console.tint("✓", .good)) \(first.name) runs again, and sends files of the share as before.")
        return isWhole
    }

    /// Kills the agent when all parts of the clip but the last are at the store, which keeps that one waiting.
    private func send(_ clip: [UInt8], by lister: Station) async throws {
        let others = folders.stations.filter { $0.name != lister.name }.map(\.name)
        try await set(others, to: "draining")
        let gate = RequestGate()
        store.faults.add(S3Fault(.hold(gate), at: .uploadPart, part: Self.parts, times: nil))
        defer {
            store.faults.clear()
            gate.open()
        }
        try DurableFile.write(clip, to: folders.shared.appending(Self.clip), mode: 0o644)
        _ = try await FleetDemoProgress.patiently("\(lister.name) sends \(Self.clip); see \(lister.log.display)") {
            store.faults.injected(at: .uploadPart) > 0 ? true : nil
        }
        try kills.kill(lister)
        try await set(others, to: "active")
    }

    private func set(_ stations: [String], to state: String) async throws {
        try await FleetConnection.use(admin) { fleet in
            for name in stations { try fleet.setAgent(name, state: state) }
        }
    }

    /// The station that lists the share now.
    private func awaitLister(besides former: Station? = nil) async throws -> Station {
        try await FleetDemoProgress.patiently("an agent lists \(folders.shared.display)") {
            let places = try await FleetConnection.use(admin) { try $0.places() }
            let place = places.first { $0.name == FleetDemoFolders.place && $0.held }
            return folders.stations.first { $0.name == place?.holder && $0.name != former?.name }
        }
    }

    /// The agent that has delivered a file.
    private func awaitReceipt(of name: String) async throws -> String {
        try await FleetDemoProgress.patiently("\(name) is delivered") {
            try await FleetConnection.use(admin) { try $0.search(name, limit: 1) }.first?.agent
        }
    }

    private func hasOnce(_ key: String, _ content: [UInt8]) -> Bool {
        guard let object = store.objects().first(where: { $0.key == key }) else { return false }
        return object.versions == 1 && DurableFile.readIfPossible(object.path, limit: content.count + 1) == content
    }

    /// Parts of it differ.
    private static func content(_ size: Int) -> [UInt8] {
        let block = 4096
        var bytes: [UInt8] = []
        for number in 0...size / block {
            bytes += [UInt8](repeating: UInt8(truncatingIfNeeded: number ^ number >> 8), count: block)
        }
        return Array(bytes.prefix(size))
    }
}

import Foundation
import InletAgent
import InletCore
import InletLinux
import Synchronization
import SystemPackage

/// Agents that the demo kills, as a power cut would, and starts again later.
final class FleetDemoKills: Sendable {
    typealias Station = FleetDemoFolders.Station

    /// By name: ends when the station is to start again.
    private let pauses = Mutex<[String: (stream: AsyncStream<Never>, end: AsyncStream<Never>.Continuation)]>([:])

    func kill(_ station: Station) throws {
        guard let process = try Self.process(of: station) else {
            throw Refusal("/proc does not show the process of \(station.name)")
        }
        let pause = AsyncStream.makeStream(of: Never.self)
        pauses.withLock { $0[station.name] = (pause.stream, pause.continuation) }
        ProcessSetup.kill(process)
    }

    func restart(_ station: Station) {
        pauses.withLock { $0.removeValue(forKey: station.name) }?.end.finish()
    }

    /// Ends when the killed station is to start again; nil for one that was not killed.
    func pause(of station: Station) -> AsyncStream<Never>? { pauses.withLock { $0[station.name]?.stream } }

    /// The process that runs a station's configuration.
    private static func process(of station: Station) throws -> Int32? {
        let words = ["run", "--config", station.configuration.string]
        return try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { Int32($0) }.first { number in
            let line = DurableFile.readIfPossible(FilePath("/proc/\(number)/cmdline"), limit: 64 << 10) ?? []
            return line.split(separator: 0).suffix(words.count).map { String(decoding: $0, as: UTF8.self) } == words
        }
    }
}

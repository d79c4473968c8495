import InletJournal
import InletTestSupport
import ServiceLifecycle
import Synchronization
import Testing

@testable import InletAgent

/// In which order the parts of an agent end.
@Suite struct StopOrderTests {
    /// Stands for a service, and takes down its end.
    private struct Witness: Service {
        let service: any Service
        let ends: Ends

        func run() async throws {
            try await service.run()
            ends.add("\(type(of: service))")
        }
    }

    private final class Ends: Sendable {
        private let names = Mutex<[String]>([])
        var all: [String] { names.withLock(\.self) }
        func add(_ name: String) { names.withLock { $0.append(name) } }
    }

    @Test func `first nothing new comes in, then running parts end, then what has ended is finished, then told`()
        async throws
    {
        let scene = try ReloadSite(ReloadSite.text()).scene()
        let stage = try await Stage(scene)
        defer { stage.journal.close() }
        let ends = Ends()
        try await whileRunning(stage.agent.services.map { Witness(service: $0, ends: ends) }) {
            try await eventually("the agent runs") { stage.events.names.contains("agent.ready") }
            #expect(ends.all.isEmpty)
        }
        let order = [
            "Reload", "Watchdog", "MountWatcher", "RootSupervisor", "StrayParking", "ExpiryClocks", "DeliveryStage",
            "FinishingStage", "ManifestWriter", "BandwidthControl", "Probes", "Leftovers", "Scheduler",
            "NotificationStage",
            "JournalMonitor",
        ]
        #expect(ends.all == order)
    }
}

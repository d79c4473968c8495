import Logging
import ServiceLifecycle

/// Tests that run one of the agent's services alone.
protocol ServiceSuite {}

extension ServiceSuite {
    /// Runs the service beside `body`, and stops it in order.
    func run(_ service: any Service, _ body: () async throws -> Void) async throws {
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let group = ServiceGroup(configuration: .init(services: [service], logger: quiet))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            do {
                try await body()
            } catch {
                tasks.cancelAll()
                while (try? await tasks.next()) != nil {}
                throw error
            }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }
}

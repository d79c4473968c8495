import InletAgent
import ServiceLifecycle

/// Runs services beside `body`, and stops them in order when it returns.
func whileRunning(_ services: [any Service], _ body: () async throws -> Void) async throws {
    let group = ServiceGroup(quietly: services)
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

import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import InletPipelines
import SystemPackage

/// Reaches an agent: over its socket while it runs, on its journal while it does not.
enum ControlAccess {
    /// Calls `body` with the API. Without a running agent the journal is opened under its lock, so that an agent cannot
    /// start in between.
    static func use<Value>(
        _ config: LoadedConfig, _ body: (any ControlAPI) async throws -> Value
    ) async throws -> Value {
        let socket = StateDirectory.controlSocket(in: config.settings.stateDirectory)
        let client = ControlClient(socket: socket)
        defer { client.shutdown() }
        do {
            if try FileLook.look(at: socket) != .missing { return try await body(client) }
        } catch is ControlClient.NotRunning {
            // A socket without a listener is what a killed agent leaves behind.
        } catch let failure as ControlClient.Failure {
            Console.printError("inlet: \(failure)")
            throw ExitStatus.tryLater
        }
        return try await useJournal(config, body)
    }

    private static func useJournal<Value>(
        _ config: LoadedConfig, _ body: (any ControlAPI) async throws -> Value
    ) async throws -> Value {
        let state = try AgentSession.takeState(config.settings.stateDirectory)
        let journal: Journal
        do {
            journal = try Journal(path: state.journal, now: .now)
        } catch {
            Console.printError("inlet: \(error)")
            throw ExitStatus.configuration
        }
        defer { journal.close() }
        let factory = PipelineFactory.standard()
        defer { factory.shutdown() }
        let commands = AgentCommands(journal: journal) { name in
            config.settings.destinations.first { $0.name == name }.flatMap { try? factory.make($0) }
        }
        let control = LocalControl(
            view: AgentView(journal: journal), commands: commands, configured: config.configuredDestinations)
        let value = try await body(control)
        // The lock is held until here.
        _ = state.path
        return value
    }
}

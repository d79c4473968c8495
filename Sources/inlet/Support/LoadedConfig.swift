import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletLinux
import InletPipelines
import SystemPackage

extension LoadedConfig {
    /// The destinations, ready to deliver. Prints what their types refuse, with its place, and exits with 78.
    func makeDestinations(_ factory: PipelineFactory) throws -> [Destination] {
        try orExit { () throws(ConfigErrors) in try tryDestinations(factory) }
    }

    /// The same, silently.
    func tryDestinations(_ factory: PipelineFactory) throws(ConfigErrors) -> [Destination] {
        var destinations: [Destination] = []
        var faults: [ConfigError] = []
        for settings in settings.destinations {
            do throws(SettingFault) {
                destinations.append(try factory.make(settings))
            } catch {
                faults.append(located(error, settings.values.positions, settings.values.position))
            }
        }
        guard faults.isEmpty else { throw ConfigErrors(list: faults) }
        return destinations
    }

    /// The receivers of notifications, ready to use. Prints what cannot be used, with its place, and exits with 78.
    func makeNotificationClients(_ factory: PipelineFactory) throws -> NotificationClients {
        try orExit { () throws(ConfigErrors) in try tryNotificationClients(factory) }
    }

    /// The same, silently.
    func tryNotificationClients(_ factory: PipelineFactory) throws(ConfigErrors) -> NotificationClients {
        var notificationClients = NotificationClients()
        var faults: [ConfigError] = []
        for receiver in settings.notify {
            do throws(SettingFault) {
                notificationClients.webhooks[receiver.name] = try factory.webhook(receiver)
                notificationClients.services[receiver.name] = try factory.messages(receiver)
            } catch {
                faults.append(located(error, receiver.positions, receiver.position))
            }
        }
        if let ping = settings.ping {
            do throws(SettingFault) {
                notificationClients.ping = try factory.ping(ping)
            } catch {
                faults.append(located(error, [:], ping.position))
            }
        }
        guard faults.isEmpty else { throw ConfigErrors(list: faults) }
        return notificationClients
    }

    /// The result of `make`. Where it refuses the settings, prints the place and exits with 78.
    func checking<Made>(
        _ settings: DestinationSettings, _ make: () throws(SettingFault) -> Made
    ) throws -> Made {
        try orExit { () throws(ConfigErrors) in
            do throws(SettingFault) {
                return try make()
            } catch {
                throw ConfigErrors(list: [located(error, settings.values.positions, settings.values.position)])
            }
        }
    }

    private func orExit<Made>(_ make: () throws(ConfigErrors) -> Made) throws -> Made {
        do throws(ConfigErrors) {
            return try make()
        } catch {
            Console.printErrors(error, in: file)
            throw ExitStatus.configuration.code
        }
    }

    private func located(
        _ fault: SettingFault, _ positions: [String: SourcePosition], _ position: SourcePosition
    ) -> ConfigError {
        error(at: positions[fault.key] ?? position, "'\(fault.key)' \(fault.message)")
    }

    /// The error for a missing destination.
    func noDestination(_ name: String, _ hint: String = "") -> ExitCode {
        ExitStatus.configuration.saying("no destination '\(DisplayText.escape(name))' in \(file.display)\(hint)")
    }

    var configuredDestinations: [(name: String, type: String)] { settings.destinations.map { ($0.name, $0.type) } }

    /// The path of this configuration's socket.
    var controlSocket: FilePath { StateDirectory.controlSocket(in: settings.stateDirectory) }
}

extension PipelineFactory {
    /// The factory of this process; hashing and copying have their own threads.
    static func standard(_ config: LoadedConfig) -> PipelineFactory {
        PipelineFactory(
            pool: BlockingPool(name: "bulk", threads: 4), userAgent: "inlet/\(Inlet.version)",
            tokens: config.settings.stateDirectory.appending("tokens"),
            readYAML: { bytes, name in try YAMLAsJSON.convert(bytes, file: name) }, proxy: config.settings.proxy)
    }
}

// A best-effort attempt: another part of the program reports the failure.

extension FileLook {
    /// The file at `path`; nil where it cannot be examined: the code that opens it next reports why.
    static func glance(at path: FilePath) -> FileLook? {
        try? look(at: path)
    }
}

extension LoadedConfig {
    /// The destination of this name; nil where there is none, or it cannot be made: `inlet check` reports why.
    func destination(_ name: String, _ factory: PipelineFactory) -> Destination? {
        settings.destinations.first { $0.name == name }.flatMap { try? factory.make($0) }
    }
}

extension ThrowingTaskGroup where ChildTaskResult == Void, Failure == any Error {
    /// Waits for the first task to end, cancels the others, and waits for them. Throws the first one's error.
    mutating func endWithFirst() async throws {
        try await next()
        cancelAll()
        // The first end counts; the others were cancelled.
        while (try? await next()) != nil {}
    }
}

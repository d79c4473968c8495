package import InletCore
package import InletLinux
package import InletTransfer
package import SystemPackage

/// Turns YAML into the JSON that says the same; throws an error whose description says what is wrong. The name is for that.
package typealias YAMLReading = @Sendable (_ bytes: [UInt8], _ file: FilePath) throws -> [UInt8]

/// Registers at a Roboscope server what another destination holds, imports markers, and keeps the sessions of folders.
package struct RoboscopePipeline: Pipeline {
    private let settings: RoboscopeSettings
    private let api: RoboscopeAPI

    package init(settings: RoboscopeSettings, client: HTTPClient, pool: BlockingPool, readYAML: YAMLReading?) {
        self.settings = settings
        api = RoboscopeAPI(settings: settings, client: client)
    }

    package func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        throw .stopping
    }

    package func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {}

    package func probe() async throws(DeliveryError) -> String { try await api.probe() }
}

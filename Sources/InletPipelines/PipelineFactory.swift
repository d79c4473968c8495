package import InletCore
package import InletLinux
internal import InletTransfer
internal import Synchronization
package import SystemPackage

/// Makes pipelines from settings. A new destination type is one folder beside this file, and one line in `make` and `types`.
package final class PipelineFactory: Sendable {
    /// Every destination type this version knows, with its keys.
    package static let types: [DestinationType] = [
        R2Settings.type, S3Settings.type, GigHiveSettings.type, FolderSettings.type, VOPISettings.type,
    ]

    /// Where hashing and copying happen.
    private let pool: BlockingPool
    private let userAgent: String
    /// Where renewed logins are kept.
    private let tokens: FilePath?
    /// One client, and so one set of connections, for each set of trusted certificates and each number of connections.
    private let clients = Mutex<[Needs: HTTPClient]>([:])

    private struct Needs: Hashable {
        var trust: Trust
        var connections: Int
    }

    /// - Parameter tokens: the folder for logins that renew themselves (`state_dir/tokens`); nil leaves destinations that
    ///   have such a login out.
    package init(pool: BlockingPool, userAgent: String, tokens: FilePath? = nil) {
        self.pool = pool
        self.userAgent = userAgent
        self.tokens = tokens
    }

    /// - Throws: `SettingFault` naming the key whose value this destination cannot use.
    package func make(_ destination: DestinationSettings) throws(SettingFault) -> Destination {
        switch destination.type {
        case R2Settings.type.name:
            let settings = try R2Settings(destination.values)
            let pipeline = R2Pipeline(
                settings: settings, client: client(Trust(caFile: settings.caFile), connections: settings.connections),
                hashing: pool)
            return Destination(
                name: destination.name, type: destination.type, pipeline: pipeline, smallLimit: settings.partSize,
                connections: settings.connections, maxInFlight: settings.maxInFlight)
        case S3Settings.type.name:
            let settings = try S3Settings(destination.values)
            let pipeline = S3Pipeline(
                settings: settings, client: client(Trust(caFile: settings.caFile), connections: settings.connections),
                hashing: pool)
            return Destination(
                name: destination.name, type: destination.type, pipeline: pipeline,
                smallLimit: settings.multipartThreshold, connections: settings.connections,
                maxInFlight: settings.maxInFlight)
        case FolderSettings.type.name:
            let settings = FolderSettings(destination.values)
            return Destination(
                name: destination.name, type: destination.type,
                pipeline: FolderPipeline(settings: settings, pool: pool), smallLimit: 8 << 20, connections: 4,
                maxInFlight: nil)
        case GigHiveSettings.type.name: return try gigHive(destination)
        case VOPISettings.type.name: return try vopi(destination)
        default:
            throw SettingFault(key: "type", message: "'\(destination.type)' is not available in this version")
        }
    }

    /// Every file takes a worker, so that `max_in_flight` bounds all of them.
    private func gigHive(_ destination: DestinationSettings) throws(SettingFault) -> Destination {
        let settings = try GigHiveSettings(destination.values)
        let pipeline = GigHivePipeline(settings: settings, client: client(settings.trust), hashing: pool)
        var made = Destination(
            name: destination.name, type: destination.type, pipeline: pipeline, smallLimit: -1, connections: 1,
            maxInFlight: settings.maxInFlight)
        made.takesSidecars = GigHiveSettings.type.takesSidecars
        made.fields = FieldSpec.filled([:], GigHiveSettings.type.fields)
        made.testExtension = "mp3"
        made.serverPin = { () async throws(DeliveryError) in try await pipeline.serverPin() }
        made.undo = { proof throws(DeliveryError) in try await pipeline.undo(proof) }
        return made
    }

    /// Every video takes a worker while it is uploaded; jobs that run are looked at in the lane of small files.
    private func vopi(_ destination: DestinationSettings) throws(SettingFault) -> Destination {
        let api = try vopiAPI(destination)
        let client = client(Trust(caFile: api.settings.caFile))
        var made = Destination(
            name: destination.name, type: destination.type,
            pipeline: VOPIPipeline(api: api, client: client, pool: pool), smallLimit: -1, connections: 16,
            maxInFlight: api.settings.maxInFlight)
        made.takesSidecars = VOPISettings.type.takesSidecars
        made.fields = FieldSpec.filled([:], VOPISettings.type.fields)
        made.testExtension = "mp4"
        made.accessToken = { () async throws(DeliveryError) in try await api.accessToken() }
        made.keepAlive = { () async throws(DeliveryError) in try await api.keepAlive() }
        return made
    }

    /// - Parameter borrowing: gives access tokens instead of the login's own; for processes beside the agent.
    package func vopiAPI(
        _ destination: DestinationSettings, borrowing: (@Sendable () async throws(DeliveryError) -> Secret)? = nil
    ) throws(SettingFault) -> VOPIAPI {
        let settings = try VOPISettings(destination.values)
        guard let tokens = tokens ?? (borrowing == nil ? nil : "") else {
            throw SettingFault(key: "auth", message: "needs a state_dir to keep the login in")
        }
        return VOPIAPI(
            settings, name: destination.name, client: client(Trust(caFile: settings.caFile)), pool: pool,
            tokens: tokens, borrowing: borrowing)
    }

    /// Fetches the results of any job; for the command line.
    package func vopiResults(_ api: VOPIAPI) -> VOPIResults {
        VOPIResults(api: api, client: client(Trust(caFile: api.settings.caFile)), pool: pool)
    }

    private func client(_ trust: Trust, connections: Int = 32) -> HTTPClient {
        let needs = Needs(trust: trust, connections: max(connections, 32))
        return clients.withLock { clients in
            if let known = clients[needs] { return known }
            let client = HTTPClient(
                trust: trust, connectionsPerHost: needs.connections, userAgent: userAgent)
            clients[needs] = client
            return client
        }
    }

    /// Ends every connection; transfers that still run fail as cancelled.
    package func shutdown() {
        for client in clients.withLock({ $0.values.map { $0 } }) { client.shutdown() }
    }
}

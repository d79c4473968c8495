package import InletCore
internal import InletTransfer

/// Destinations of `type: vopi`, and what the command line needs of them.
extension PipelineFactory {
    /// Every video takes a worker while it is uploaded; jobs that run are looked at in the lane of small files.
    func vopi(_ destination: DestinationSettings) throws(SettingFault) -> Destination {
        let api = try vopiAPI(destination)
        let client = try client(for: destination, Trust(caFile: api.settings.caFile))
        var made = Destination(
            name: destination.name, type: destination.type,
            pipeline: VOPIPipeline(api: api, client: client, pool: pool), smallLimit: -1, connections: 16,
            maxInFlight: api.settings.maxInFlight)
        made.setAddress(api.settings.url)
        made.takesSidecars = VOPISettings.type.takesSidecars
        made.fields = FieldSpec.filled([:], VOPISettings.type.fields)
        made.testExtension = "mp4"
        made.accessToken = { refused async throws(DeliveryError) in try await api.accessToken(after: refused) }
        made.keepAlive = { () async throws(DeliveryError) in try await api.keepAlive() }
        made.renewal = { await api.renewal() }
        return made
    }

    /// - Parameter borrowing: gives access tokens instead of the login's own, another one after one that the server has
    ///   refused; for processes beside the agent.
    package func vopiAPI(
        _ destination: DestinationSettings,
        borrowing: (@Sendable (_ refused: Secret?) async throws(DeliveryError) -> Secret)? = nil
    ) throws(SettingFault) -> VOPIAPI {
        let settings = try VOPISettings(destination.values)
        guard let tokens else {
            throw SettingFault(key: "auth", message: "needs a state_dir to keep the login in")
        }
        return VOPIAPI(
            settings, name: destination.name, client: try client(Trust(caFile: settings.caFile), of: destination),
            pool: pool,
            tokens: tokens, borrowing: borrowing)
    }

    /// Fetches the results of any job.
    package func vopiResults(_ api: VOPIAPI) -> VOPIResults {
        VOPIResults(api: api, client: api.client, pool: pool)
    }
}

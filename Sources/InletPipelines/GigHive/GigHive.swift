internal import FoundationEssentials
package import InletCore
package import InletTransfer
internal import SystemPackage

/// The settings of a `type: gighive` destination: a GigHive server and the transport to it.
package struct GigHiveSettings: Sendable {
    package enum Transport: String, Sendable, CaseIterable {
        /// A form up to `multipart_limit`, tus above; also tus where a form turns out to be too large for something on
        /// the way.
        case auto
        /// One `multipart/form-data` request.
        case multipart
        /// Chunks by tus 1.0.0, then `finalize`.
        case tus
    }

    package enum Credentials: Sendable, Equatable {
        case basic(user: String, password: Secret)
        /// A guest's token, from a QR code; its event is fixed on the server.
        case token(Secret, displayName: String?)
    }

    package var url: HTTPURL
    package var credentials: Credentials
    package var transport: Transport
    /// Bytes of one tus request: the cost of a broken connection.
    package var chunkSize: Int64
    /// With `auto`, larger files use tus.
    package var multipartLimit: Int64
    package var maxUploadBytes: Int64
    package var maxInFlight: Int
    /// How long a server may be unready to file a complete upload.
    package var finalizeFor: Duration
    package var trust: Trust

    package static let type = DestinationType(
        name: "gighive", summary: "a GigHive server, by form or by tus",
        keys: GigHiveKind().specs,
        fields: GigHiveFields.specs,
        takesSidecars: false)

    /// - Throws: `SettingFault` naming the key whose value cannot be used.
    package init(_ values: ConfigSection) throws(SettingFault) {
        let values = Section(GigHiveKind(), values)
        url = try values.neededAddress(\.url, allowHTTP: values.allowHTTP)
        credentials = try Self.credentials(values)
        transport = values.transport
        if case .token = credentials {
            guard transport != .multipart else {
                throw values.fault(\.transport, "must be auto or tus with an upload_token")
            }
            transport = .tus
        }
        chunkSize = values.chunkSize
        guard (5 << 20...8 << 20).contains(chunkSize) else {
            throw values.fault(\.chunkSize, "must be between 5MiB and 8MiB")
        }
        multipartLimit = values.multipartLimit
        maxUploadBytes = values.maxUploadBytes
        guard maxUploadBytes > 0 else { throw values.fault(\.maxUploadBytes, "must not be 0") }
        maxInFlight = values.maxInFlight
        finalizeFor = values.finalizeFor
        trust = try Trust(values.trust)
    }

    private static func credentials(_ values: Section<GigHiveKind>) throws(SettingFault) -> Credentials {
        let user = values.user ?? ""
        guard let token = values.uploadToken else {
            guard !user.isEmpty, let password = values.password, !password.isEmpty else {
                throw values.fault(\.user, "and password are needed, or an upload_token")
            }
            guard !user.contains(":") else {
                throw values.fault(\.user, "must not contain ':' (RFC 7617, section 2)")
            }
            return .basic(user: user, password: password)
        }
        guard user.isEmpty, values.password == nil else {
            throw values.fault(\.uploadToken, "takes the place of user and password; give one of them")
        }
        let text = token.reveal().utf8
        let isToken = text.allSatisfy { ServiceClient.idBytes.contains($0) }
        guard isToken, (1...128).contains(text.count) else {
            throw values.fault(\.uploadToken, "is not a GigHive upload token (1 to 128 of A-Z a-z 0-9 - _)")
        }
        guard values.tosAccepted else {
            throw values.fault(\.tosAccepted, "must be true: guests have to accept the terms of use")
        }
        let name = values.displayName
        guard name?.unicodeScalars.count ?? 0 <= 100 else {
            throw values.fault(\.displayName, "is longer than 100 characters")
        }
        return .token(token, displayName: name)
    }
}

package struct GigHiveKind: DestinationKind {
    let url = Key("url", .string, required: true, "Address of the server, such as https://gighive.example.")
    let user = Key("user", .string, "Uploader or admin user of the server.")
    let password = Key("password", .secret, "Password of that user.")
    let uploadToken = Key("upload_token", .secret, "A guest's upload token, instead of user and password.")
    let tosAccepted = Key("tos_accepted", .boolean, default: false, "Accepts the terms of use, as guests must.")
    let displayName = Key("display_name", .string, "Name of the guest, up to 100 characters.")
    let transport = Key(
        "transport", .choice(GigHiveSettings.Transport.self), default: .auto,
        "auto sends large files by tus, and smaller ones where something refuses the form for its size.")
    let chunkSize = Key("chunk_size", .bytes, default: "8MiB", "Size of a tus request, from 5MiB to 8MiB.")
    let multipartLimit = Key(
        "multipart_limit", .bytes, default: "64MiB", "With transport: auto, larger files go by tus.")
    let maxUploadBytes = Key(
        "max_upload_bytes", .bytes, default: "6442450944",
        "UPLOAD_MAX_BYTES of the server. Larger files fail before Inlet sends anything.")
    let maxInFlight = Key("max_in_flight", .integer(1...16), default: 2, "Most files sent at once to this server.")
    let finalizeFor = Key(
        "finalize_for", .duration, default: "15m",
        "How long Inlet waits for the server to file an upload.")
    let allowHTTP = Key.allowHTTP
    let trust = TrustKeys()
    let bandwidth = BandwidthKeys()
    let proxy = ProxyKeys.key()

    package var type: DestinationType { GigHiveSettings.type }
    package var pipeline: any Pipeline.Type { GigHivePipeline.self }

    /// Every file takes a worker, so that `max_in_flight` limits all of them.
    package func make(
        _ destination: DestinationSettings, _ factory: PipelineFactory
    ) throws(SettingFault) -> Destination {
        let settings = try GigHiveSettings(destination.values)
        let client = try factory.client(for: destination, settings.trust)
        let pipeline = GigHivePipeline(
            api: GigHiveAPI(settings: settings, client: client), hashing: factory.pool)
        var made = Destination(
            name: destination.name, type: destination.type, pipeline: pipeline, smallLimit: -1, connections: 1,
            maxInFlight: settings.maxInFlight)
        made.setAddress(settings.url)
        made.server = (settings.url, settings.trust)
        made.testExtension = "mp3"
        made.serverPin = { () async throws(DeliveryError) in try await client.serverPin(of: settings.url) }
        made.undo = { proof throws(DeliveryError) in try await pipeline.undo(proof) }
        return made
    }

    /// Without the token that deletes the file.
    package func withoutSecrets(_ name: String, _ note: [UInt8]) -> [UInt8]? {
        guard name == GigHiveReply.noteName, var reply: GigHiveReply = JSON.note(note),
            reply.deleteToken != nil || reply.statusNonce != nil
        else { return nil }
        (reply.deleteToken, reply.statusNonce) = (nil, nil)
        return JSON.note(of: reply)
    }

    package var setup: DestinationSetup {
        DestinationSetup(
            name: "stage", place: "A GigHive server",
            questions: [
                .init(
                    "url", "Address of the GigHive server?", help: "the server's address",
                    example: "https://gighive.example"),
                .init("user", "Its user?", help: "the user", example: "uploader"),
                .init("password", "That user's password", .secret(variable: "GIGHIVE_PASSWORD")),
            ],
            hints: [
                "transport: auto              # auto | multipart | tus",
                "pin: \"sha256//…\"             # for a self-signed certificate: 'inlet check' prints the server's",
            ],
            route: [
                "match: { extensions: [mp4, mov, mp3, wav, flac] }", "key: \"{dir}/{name}\"",
                "with:                          # label is the file's name and event_date its day, unless given",
                "  org_name: \"{folder[1]}\"      # the first folder below the watched one", "  event_type: band",
            ])
    }
}

// MARK: - Looking at what was delivered

extension GigHivePipeline: DeliveryVerifying {
    package var findsByKey: Bool { false }

    /// The server's record of the asset. An uploader's login cannot fetch its bytes: the checksum in the record is the
    /// one that the server computed when it received the file.
    package func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        guard let id = order.proof.details?["asset_id"].flatMap({ Int64($0) }) else {
            return .cannotTell("the server did not say which asset it is")
        }
        if api.isGuest { return .cannotTell("guests may not look at assets") }
        guard let asset = try await api.asset(id) else { return .missing("asset \(id) is not there") }
        if let size = asset.size, size != order.proof.size {
            return .differs("asset \(id) has \(size) bytes, not \(order.proof.size)")
        }
        let wanted =
            ([order.proof.content].compactMap(\.self).filter { $0.partSize == nil }.map(\.digest) + order.digests)
            .first { $0.algorithm == .sha256 }
        guard let wanted, let said = asset.sha256?.lowercased() else {
            return .same("the server's record of asset \(id)")
        }
        return said == wanted.hex
            ? .same("the server's record of asset \(id): length, sha256")
            : .differs("asset \(id) has the sha256 \(DisplayText.escape(said)), not \(wanted.hex)")
    }
}

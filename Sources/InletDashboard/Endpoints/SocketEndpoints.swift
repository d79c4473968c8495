package import Foundation
internal import InletAgent
package import InletCore
package import InletJournal
package import SystemPackage

/// Served only on the control socket, to root and the agent's own user: these read and write any file, and hand out
/// credentials.
extension Endpoints {
    package static let undo = TypedEndpoint.post(
        "jobs/{id}/undo/{type}", "Deletes a delivered object at a destination of the given type.", need: .socket,
        within: .seconds(400)
    ) { call in try await call.control.undo(call.id(), type: call.text(.type) ?? "") }

    package static let accessToken = TypedEndpoint.post(
        "tokens/{destination}", "A token for requests to a destination; after a refused one, another.",
        TokenRequest?.self, need: .socket, within: .seconds(150)
    ) { call, request throws -> TokenReport in
        do throws(DeliveryError) {
            return TokenReport(
                token: try await call.control.agent.accessToken(
                    call.text(.destination) ?? "", after: request.map { Secret($0.refused) }, by: call.principal.name))
        } catch {
            return TokenReport(message: "\(error)")
        }
    }

    package static let loginLink = TypedEndpoint.post(
        "login-links", "A link to the page that logs a browser in, once, for ten minutes.", need: .socket
    ) { call in call.control.loginLink() }

    package static let backup = TypedEndpoint.post(
        "queue/backup", "Backs up the journal.", BackupRequest.self, need: .socket, within: .seconds(3600)
    ) { call, order throws -> CommandReport in
        do {
            let path = try await call.control.agent.backUp(to: order.path.map { FilePath(bytes: $0) })
            return .done("the journal's backup is \(path.display)")
        } catch {
            return .refused("no backup was made: \(error)")
        }
    }

    /// Where a route asks for checksums, the agent reads all of the files before it answers.
    package static let send = TypedEndpoint.post(
        "send", "Queues files.", SendOrder.self, need: .socket, limit: SendOrder.mostBytes,
        within: .seconds(86_400)
    ) { call, order throws -> [CommandReport] in
        let paths = order.paths.map { FilePath(bytes: Array($0)) }
        return await call.control.agent.send(paths, to: order.to, again: order.again ?? false).map { answer in
            switch answer {
            case .known(let job, let what): CommandReport(done: true, message: what, job: job, known: true)
            case .queued(let job): CommandReport(done: true, message: "queued as job \(job)", job: job)
            case .refused(let why): .refused(why)
            }
        }
    }

    package static let follow = TypedEndpoint.post(
        "follow", "The progress of jobs, in their order.", [Int64].self, need: .socket
    ) { call, jobs in try await call.control.follow(jobs) }

    // A POST, because there can be many numbers; it changes nothing.
    package static let proofs = TypedEndpoint.post(
        "proofs", "The proofs of deliveries, a page at a time.", ProofRequest.self, need: .socket,
        limit: Endpoint.largeBody
    ) { call, request throws -> ProofPage in
        let (page, next) = try await call.control.agent.journal.delivered(
            request.filter, after: request.after, limit: ProofPage.size)
        return ProofPage(proofs: page.map { ProofReport($0) }, next: next)
    }

    package static let contents = TypedEndpoint.post(
        "contents", "The jobs that brought a content to some destinations.", ContentQuery.self, need: .socket,
        limit: Endpoint.largeBody
    ) { call, question throws -> [ContentReport] in
        let found = try await call.control.agent.journal.originals(question)
        return question.destinations.compactMap { name in
            found[name].map {
                ContentReport(destination: name, job: $0.job, path: $0.path.display, key: $0.proof.key)
            }
        }
    }
}

/// A link to the page, or the reason there is none. Plain text only in the answer on the control socket.
package struct LoginLinkReport: Codable, Sendable, NamedSchema {
    package var url: String?
    /// Why there is no link.
    package var message = ""

    static var schemaName: String { "LoginLink" }
}

/// The body that `send` posts; paths as bytes, because names need not be text.
package struct SendOrder: Codable, Sendable, NamedSchema {
    /// Files of one request.
    static let most = 256
    /// Room for as many of the longest paths, in base64.
    static let mostBytes = 2 << 20

    package var paths: [Data]
    package var to: String?
    package var again: Bool?

    static let notes: [String: SchemaDescription] = [
        "paths": "Base64, because names need not be text.", "again": "Also files that were delivered there before.",
    ]
}

/// The body that `queue backup` posts; without a path the backup goes to the state directory.
package struct BackupRequest: Codable, Sendable, NamedSchema {
    package var path: [UInt8]?

    static let notes: [String: SchemaDescription] = ["path": "The path's bytes."]

    package init(path: FilePath?) { self.path = path?.bytes }
}

/// The body that `resume` posts; the path as bytes, because names need not be text, or as text.
package struct RootOrder: Codable, Sendable, NamedSchema {
    package var path: [UInt8]?
    package var text: String?

    static let notes: [String: SchemaDescription] = ["path": "The path's bytes.", "text": "Or the path as text."]

    package init(path: FilePath) { self.path = path.bytes }

    func root() throws(APIFault) -> FilePath {
        if let path, !path.isEmpty, !path.contains(0) { return FilePath(bytes: path) }
        guard let text, !text.isEmpty, !text.utf8.contains(0) else {
            throw .badRequest("'path' or 'text' must name a folder")
        }
        return FilePath(text)
    }
}

/// A request for a token after the last one was refused. Plain text only in the request on the control socket.
package struct TokenRequest: Codable, Sendable, NamedSchema {
    package var refused: String

    static var schemaName: String { "TokenWish" }

    package init(refused: Secret) { self.refused = refused.reveal() }
}

/// A token, or the reason there is none. Plain text only in the answer on the control socket.
package struct TokenReport: Codable, Sendable, NamedSchema {
    package var token: Secret?
    /// Why there is no token.
    package var message: String

    init(token: Secret? = nil, message: String = "") {
        self.token = token
        self.message = message
    }

    private enum CodingKeys: String, CodingKey {
        case token
        case message
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        token = try values.decodeIfPresent(String.self, forKey: .token).map { Secret($0) }
        message = try values.decode(String.self, forKey: .message)
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encodeIfPresent(token?.reveal(), forKey: .token)
        try values.encode(message, forKey: .message)
    }
}

/// A content that a destination has.
package struct ContentReport: Codable, Sendable, NamedSchema {
    package var destination: String
    /// The job that brought it there.
    package var job: Int64
    package var path: String
    package var key: String
}

extension ContentQuery: NamedSchema {
    static var schema: Schema {
        .object([
            .must("digest", .object([], more: .anything)), .must("size", .integer), .must("route", .text),
            .must("fields", .map(.text)), .must("destinations", .list(.text)),
        ])
    }
}

/// Selects proofs.
package struct ProofRequest: Codable, Sendable, Equatable, NamedSchema {
    /// Numbers of files; empty = all.
    package var jobs: [Int64]
    /// Milliseconds since 1970; only deliveries that arrived then or later.
    package var since: Int64?
    package var destination: String?
    package var batch: Int64?
    /// The last delivery of the page before; 0 for the first page.
    package var after: Int64

    static var schemaName: String { "ProofWish" }

    package init(
        jobs: [Int64] = [], since: WallTime? = nil, destination: String? = nil, batch: Int64? = nil, after: Int64 = 0
    ) {
        self.jobs = jobs
        self.since = since?.milliseconds
        self.destination = destination
        self.batch = batch
        self.after = after
    }

    var filter: DeliveredFilter {
        DeliveredFilter(
            jobs: jobs, since: since.map { WallTime(milliseconds: $0) }, destination: destination, batch: batch)
    }
}

/// One page of proofs.
package struct ProofPage: Codable, Sendable, NamedSchema {
    package var proofs: [ProofReport]
    /// Where the next page begins; nil when this is the last one.
    package var next: Int64?

    /// Deliveries of one page.
    static let size = 200
}

/// The journal's record of a delivered file, to compare the destination's copy with.
package struct ProofReport: Codable, Sendable, NamedSchema {
    package var job: Int64
    package var delivery: Int64
    package var path: String
    package var destination: String
    /// Without the journal's private parts; nil for an unreadable one.
    package var proof: Proof?
    /// Checksums of the whole file, read at admission.
    package var digests: [Digest]

    static let notes: [String: SchemaDescription] = [
        "proof": .schema(.object([], more: .anything)), "digests": .schema(.list(.object([], more: .anything))),
    ]

    init(_ delivered: DeliveredFile) {
        var proof = delivered.delivery.proof
        proof?.secrets = nil
        job = delivered.file.id
        delivery = delivered.delivery.id
        path = delivered.file.fullPath.display
        destination = delivered.delivery.destination
        self.proof = proof
        digests = delivered.file.digests
    }
}

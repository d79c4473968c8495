internal import Foundation
internal import Hummingbird
internal import InletCore
internal import InletJournal
internal import SystemPackage

/// What `send` posts; the paths as bytes, because names need not be text.
struct SendOrder: Codable, Sendable {
    /// Files of one request.
    static let most = 256
    /// Room for as many of the longest paths, in base64.
    static let mostBytes = 2 << 20

    var paths: [Data]
    var to: String?
    /// Also what was delivered before.
    var again: Bool?
}

/// What `queue backup` posts; no path for one in the state directory.
struct BackupOrder: Codable, Sendable {
    var path: [UInt8]?
}

/// What only those may do who may write to the control socket: read any file, write any file, have credentials.
extension Endpoints {
    static let socket: [Endpoint] = [
        .post("jobs/{id}/undo/{type}", "Deletes at its destination what was delivered to one of a type.", need: .socket)
        {
            call, context in try await context.control.undo(call.number("id"), type: call.places["type"] ?? "")
        },
        token,
        .post("queue/backup", "Backs the journal up.", BackupOrder.self, need: .socket) { _, context, order in
            try await context.control.backUp(to: order.path.map { FilePath(bytes: $0) })
        },
        .postForList(
            "send", "Takes files into the queue.", SendOrder.self, need: .socket, limit: SendOrder.mostBytes
        ) { _, context, order in
            let paths = order.paths.map { FilePath(bytes: Array($0)) }
            return try await context.control.send(paths, to: order.to, again: order.again ?? false)
        },
        follow,
        // Asked for by POST, because there can be many numbers; they change nothing.
        .post(
            "proofs", "The proofs of what was delivered, a page at a time.", ProofWish.self, need: .socket,
            limit: Endpoint.largeBody
        ) { _, context, wish in try await context.control.proofs(wish) },
        .postForList(
            "contents", "The jobs that brought a content to some destinations.", ContentQuestion.self, need: .socket,
            limit: Endpoint.largeBody
        ) { _, context, question in try await context.control.originals(question) },
    ]

    private static let token: Endpoint = {
        var endpoint = Endpoint.post(
            "tokens/{destination}", "A token for requests to a destination; after a refused one, another.",
            need: .socket
        ) { call, context in
            let wish = call.body.isEmpty ? nil : try call.decoded(TokenWish.self)
            return try await context.control.acting(for: call.visitor.name).accessToken(
                call.places["destination"] ?? "", after: wish.map { Secret($0.refused) })
        }
        endpoint.body = Endpoint.Body(
            schema: .named(TokenWish.self), limit: Endpoint.usualBody, isRequired: false)
        return endpoint
    }()

    private static let follow: Endpoint = {
        var endpoint = Endpoint.post("follow", "How far jobs are, in their order.", need: .socket) { call, context in
            try await context.control.follow(call.decoded([Int64].self))
        }
        endpoint.body = Endpoint.Body(schema: .list(.integer), limit: Endpoint.usualBody)
        return endpoint
    }()
}

internal import HummingbirdCore
internal import InletCore
internal import InletLinux
internal import NIOCore
internal import ServiceLifecycle
package import SystemPackage

/// Serves the control API on the agent's Unix socket, mode 0660. Users who may write to it may see and steer the agent;
/// the agent's own user and root may do everything.
package struct ControlServer: Service {
    private let path: FilePath
    private let responder: APIResponder
    private let whenOpen: @Sendable () -> Void

    /// - Parameters:
    ///   - feed: the record of recent events.
    ///   - whenOpen: called once the socket exists.
    package init(
        path: FilePath, control: LocalControl, feed: ActivityFeed? = nil, whenOpen: @escaping @Sendable () -> Void = {}
    ) {
        self.path = path
        self.whenOpen = whenOpen
        responder = APIResponder(context: APIContext(control: control, feed: feed), table: Endpoints.all)
    }

    package func run() async throws {
        // Others are kept out until the socket has its mode: a client that connects before would stay connected.
        let mask = ProcessSetup.withholdWritingFromOthers()
        let restore = { @Sendable in if let mask { ProcessSetup.setFileMask(mask) } }
        do {
            try await withThrowingDiscardingTaskGroup { group in
                group.addTask { await responder.context.keepHome() }
                try await server(restore).run()
                group.cancelAll()
            }
        } catch {
            restore()
            throw error
        }
        // If it stays, the next start replaces it, and commands find no agent at it.
        try? DurableFile.remove(path)
    }

    private func server(_ isBound: @escaping @Sendable () -> Void) throws -> any Service {
        var bounds = ServerBounds()
        (bounds.idle, bounds.backlog) = (.seconds(300), 256)
        let (path, responder, whenOpen, owner) = (path, responder, whenOpen, ProcessSetup.userID)
        return try httpService(at: .unixDomainSocket(path: path.string), bounds) { _ in
            // Without it the mask applies, by which others may not write to it, nor perhaps its group.
            try? FileOwner.setMode(path, 0o660)
            isBound()
            whenOpen()
        } answer: { request, deadline in
            let peer = await PeerCredentials.of(deadline.channel)
            let principal = Principal(access: .full, name: peer.map { "uid \($0.user)" } ?? "a person")
            return await responder.respond(to: request, from: principal, deadline) { endpoint in
                if let fault = Self.fault(peer, endpoint.need, owner: owner) { throw fault }
            }
        }
    }

    /// Why a peer may not use an endpoint. Write access to the socket equals a login with the full secret. Endpoints
    /// that only the socket serves read and write any file with the agent's rights and hand out its credentials: they
    /// are for root and the agent's own user.
    ///
    /// - Parameter owner: the agent's user.
    static func fault(_ peer: PeerCredentials?, _ need: Endpoint.Need, owner: UInt32) -> APIFault? {
        guard let peer else { return APIFault(403, "peer", "the kernel does not identify the caller") }
        guard need == .socket, peer.user != 0, peer.user != owner else { return nil }
        return APIFault(
            403, "owner",
            "only root and the agent's own user may do this (uid \(owner)), and not for uid \(peer.user): run the command with sudo, or put files into a watched folder"
        )
    }
}

/// The process at the other end of the socket, from the kernel (SO_PEERCRED, unix(7)).
struct PeerCredentials: Sendable {
    var process: Int32 = 0
    var user: UInt32 = 0
    var group: UInt32 = 0

    static func of(_ channel: any Channel) async -> PeerCredentials? {
        guard let provider = channel as? any SocketOptionProvider else { return nil }
        let option = NIOBSDSocket.Option(rawValue: 17)
        // The filter refuses peers that the kernel does not name.
        return try? await provider.unsafeGetSocketOption(level: .socket, name: option).get()
    }
}

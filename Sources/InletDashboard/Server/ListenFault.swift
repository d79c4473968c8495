package import InletCore
internal import NIOCore
internal import NIOPosix
internal import SystemPackage

/// Why a port cannot be had, and what to do about it.
package struct ListenFault: Sendable {
    package let reason: String
    package let remedy: String?

    /// Both, as one line.
    var words: String { remedy.map { "\(reason); \($0)" } ?? reason }

    init(_ error: any Error, _ listen: ListenAddress) {
        guard let error = error as? IOError else {
            reason = "'\(DisplayText.escape(listen.host))' is no address of this machine (\(error))"
            remedy = nil
            return
        }
        (reason, remedy) =
            switch Errno(rawValue: error.errnoCode) {
            case .addressInUse:
                (
                    "another program listens there, or an agent that you may not ask",
                    "give dashboard.listen another port, or end that program"
                )
            case .addressNotAvailable:
                (
                    "this machine does not have the address (yet)",
                    "dashboard.listen needs one of its own, or 127.0.0.1"
                )
            case .permissionDenied: ("ports below 1024 need a privilege", "give dashboard.listen one from 1024")
            case let other: ("\(other)", nil)
            }
    }

    /// Listens there for a moment, as the dashboard would; nil when that can be had.
    package static func of(_ listen: ListenAddress) async -> ListenFault? {
        do {
            // What has just been left may be had again, as by the server.
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .bind(host: listen.bindHost, port: listen.port).get()
            // It could be had, which is all that was asked.
            try? await channel.close()
            return nil
        } catch {
            return ListenFault(error, listen)
        }
    }
}

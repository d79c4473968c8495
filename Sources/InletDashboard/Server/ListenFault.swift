internal import InletCore
internal import NIOCore
internal import SystemPackage

/// Why a port cannot be had, and what to do about it.
enum ListenFault {
    static func words(_ error: any Error, _ listen: ListenAddress) -> String {
        guard let error = error as? IOError else {
            return "'\(DisplayText.escape(listen.host))' is no address of this machine (\(error))"
        }
        return switch Errno(rawValue: error.errnoCode) {
        case .addressInUse: "another program listens there; give dashboard.listen another port, or end that program"
        case .addressNotAvailable:
            "this machine does not have the address (yet); dashboard.listen needs one of its own, or 127.0.0.1"
        case .permissionDenied: "ports below 1024 need a privilege; give dashboard.listen one from 1024"
        case let other: "\(other)"
        }
    }
}

import Glibc
package import InletCore
import SystemPackage

/// The users that this system knows.
package enum UserName {
    /// Has the number of a user looked up by name. May ask a server, where the system has its users from one.
    package static func number(of name: String) -> UserLookup {
        var room = 1024
        while true {
            var entry = passwd()
            var found: UnsafeMutablePointer<passwd>?
            var texts = [CChar](repeating: 0, count: room)
            let code = getpwnam_r(name, &entry, &texts, room, &found)
            if code == ERANGE, room < 1 << 20 {
                room *= 4
            } else if code == EINTR {
                continue
            } else if found != nil {
                return .found(entry.pw_uid)
            } else {
                // getpwnam(3): some systems answer so for a name that they do not know.
                return [0, ENOENT, ESRCH, EBADF, EPERM].contains(code) ? .unknown : .failed("\(Errno(rawValue: code))")
            }
        }
    }
}

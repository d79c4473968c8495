import Glibc
import SystemPackage

/// Whether this process can open anything now: libraries that fail for want of a descriptor do not always say so.
package enum Shortage {
    /// The error of opening `/dev/null`, if the process or the system has no descriptors or memory left.
    package static func now() -> SystemError? {
        do throws(SystemError) {
            _ = try Descriptor(opening: "/dev/null", O_RDONLY)
            return nil
        } catch {
            return error.isShortage ? error : nil
        }
    }
}

internal import Glibc
package import InletCore

extension WallTime {
    /// The civil clock's time now (`clock_gettime(2)`, CLOCK_REALTIME).
    package static var now: WallTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}

/// How much of its time to live a delivery has left when it is put back because its window is closed. In milliseconds.
package struct WindowLife: Sendable {
    /// All that its route gives it.
    package var life: Int64
    /// When its time ends, on the destination's expiry clock.
    package var expiry: Int64
    /// That clock now.
    package var uptime: Int64

    package init(life: Int64, expiry: Int64, uptime: Int64) {
        self.life = life
        self.expiry = expiry
        self.uptime = uptime
    }

    /// What is left without the time in which its window was closed and nobody had looked: all workers were busy. The clock may
    /// have stood in that time itself, so that no more than the whole life is given back; 0 or less when it is over.
    package func left(closedFor closed: Duration) -> Int64 { min(life, expiry - uptime + closed.milliseconds) }
}

"""The agent beside a broker: registers it, heartbeats, holds its image, fences itself."""
